"""The dry run of a drain: what the API server would say to each eviction, and that nothing changes."""

from datetime import timedelta

import pytest

from fleet.models import Node
from operations.eviction_trials import trial_of
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Disruption, Operation, OperationNode
from tests.callers import calling
from tests.make import a_user
from tests.operations.test_rounds import a_budget, a_pod, begin, is_cordoned, node, pods, rounds, terminating
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = pytest.mark.django_db


def mine(operation: Operation) -> list[tuple[str, str]]:
    """Returns names and states, without the other pods of the cluster."""
    tried = [(pod["name"], pod["state"]) for pod in node(operation).progress["pods"]]
    return [pod for pod in tried if pod[0].startswith("team-a/")]


def test_it_asks_about_each_pod_and_changes_nothing(ground: Ground):
    before = ground.node(CANARY)
    for name in ("web-1", "web-2"):
        a_pod(ground, name)
    a_pod(ground, "of-the-node", owner="DaemonSet")

    operation = rounds(ground, begin(ground, "try-drain", CANARY))

    seen = node(operation)
    assert (operation.state, seen.state, seen.progress["refused"]) == (OperationState.FINISHED, NodeProgress.DONE, 0)
    assert mine(operation) == [("team-a/web-1", "accepted"), ("team-a/web-2", "accepted")]
    assert "The API server accepted" in seen.reason
    assert terminating(ground) == []
    assert ground.node(CANARY) == before
    assert not Disruption.objects.in_force().exists()


def test_a_budget_that_refuses_is_named_with_its_pod(ground: Ground):
    a_pod(ground, "web-1")
    a_budget(ground)

    operation = rounds(ground, begin(ground, "try-drain", CANARY))

    assert mine(operation) == [("team-a/web-1", "refused")]
    assert node(operation).reason.startswith("1 of ")
    assert "not accepted. team-a/web-1: Cannot evict pod as it would violate" in node(operation).reason
    assert (pods(ground), is_cordoned(ground)) == (["web-1"], False)


def test_a_node_that_was_made_again_is_not_tried(ground: Ground):
    a_pod(ground, "web-1")
    operation = begin(ground, "try-drain", CANARY)
    OperationNode.objects.update(node_uid="uid-before")

    seen = node(rounds(ground, operation))

    assert (seen.state, seen.progress) == (NodeProgress.FAILED, {})
    assert "a different node with the same name" in seen.reason


def test_a_webhook_without_dry_runs_is_no_refusal(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    from kube import client

    def evict(*_: object, **__: object) -> None:
        raise client.Refused("admission webhook “x” does not support dry run")

    a_pod(ground, "web-1")
    monkeypatch.setattr(client, "evict_pod", evict)

    assert mine(rounds(ground, begin(ground, "try-drain", CANARY))) == [("team-a/web-1", "not tried")]


def test_many_pods_are_tried_at_the_pace_of_their_cluster(ground: Ground):
    """lifecycle R21: at most 5 a second."""
    for number in range(12):
        a_pod(ground, f"web-{number}")
    operation = rounds(ground, begin(ground, "try-drain", CANARY))

    assert (node(operation).state, node(operation).progress["tried"]) == (NodeProgress.RUNNING, 10)
    assert "at most 5 a second in a cluster" in node(operation).reason
    operation = rounds(ground, operation, 2)
    assert node(operation).state == NodeProgress.DONE
    assert len(mine(operation)) == 12


def test_a_cancelled_trial_asks_nothing_more(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    from kube import client
    from operations import commands

    asked: list[str] = []
    operation = begin(ground, "try-drain", CANARY)

    def evict(_connection: object, _namespace: str, name: str, **__: object) -> None:
        asked.append(name)
        commands.cancel(Operation.objects.get(pk=operation.pk), actor="ada", reason="No.", now=ground.clock())

    for name in ("web-1", "web-2"):
        a_pod(ground, name)
    monkeypatch.setattr(client, "evict_pod", evict)

    operation = rounds(ground, operation)

    assert len(asked) == 1
    assert (operation.state, node(operation).state) == (OperationState.CANCELLED, NodeProgress.CANCELLED)


def test_the_preview_of_a_drain_offers_it_and_shows_its_result_for_an_hour(ground: Ground):
    row = Node.objects.get(cluster=ground.cluster, name=CANARY)
    bea = visiting(a_user("bea", role="operator"))
    drain = f"/operations/new?kind=drain&nodes={row.pk}"
    sent = {"kind": ["drain", "try-drain"], "nodes": str(row.pk), "reason": "Xid 79.", "seen": "Old.", "seen_at": "1"}
    a_pod(ground, "web-1")
    a_budget(ground)

    assert "Try evictions first" in page(bea, drain).text
    assert bea.post("/operations/new", sent).status_code == 302
    assert Operation.objects.get().kind == "try-drain"
    operation = rounds(ground, begin(ground, "try-drain", CANARY))
    shown = page(bea, f"/operations/{operation.pk}")
    other = Node.objects.filter(cluster=ground.cluster, name__in=REST).first()

    assert "Drain 1 node" in shown.text
    assert f"/operations/new?kind=drain&nodes={row.pk}" in shown.links
    assert trial_of(ground.cluster, [row, other], now=ground.clock()).nodes == 1
    assert trial_of(ground.cluster, [row], now=ground.clock() + timedelta(hours=2)) is None
    assert trial_of(ground.cluster, [other], now=ground.clock()) is None


def test_many_nodes_need_no_typed_number(ground: Ground):
    bea = calling(a_user("bea", role="operator"))
    uids = list(Node.objects.filter(cluster=ground.cluster).values_list("uid", flat=True))
    asked = {"cluster": ground.cluster.pk, "kind": "try-drain", "nodes": uids}

    seen = bea.post("/api/v1/operations/previews", asked, format="json").json()

    assert (seen["needs_typed_count"], seen["approvals"]) == (False, [])
    assert "as a dry run" in seen["sentence"]
