"""A second person above 20 % of a production pool (lifecycle R47)."""

from typing import Any

import pytest

from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Node
from operations import commands
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Disruption, Operation, Quarantine
from operations.operation_round import run_operation
from operations.pool_shares import SUMMED
from operations.refusals import OperationRefused
from people.models import AuditEntry
from people.rights import NotAllowed
from tests.callers import calling
from tests.make import NOON, a_cluster, a_node, a_pool, a_user
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def nodes() -> list[Node]:
    pool = a_pool(a_cluster(mode="operate"), "h100", environment="production")
    return [a_node(pool.cluster, f"gpu-{number}", pool=pool) for number in range(10)]


def begin(nodes: list[Node], kind: str = "quarantine", **given) -> Operation:
    given = {"actor": "ada", "reason": "Xid 79.", "typed_count": len(nodes), "now": NOON} | given
    return commands.start(nodes[0].cluster, kind, nodes, **given)


@pytest.mark.parametrize(("chosen", "kind", "state"), [
    (3, "quarantine", "proposed"), (3, "drain", "proposed"), (2, "drain", "running"), (3, "release", "running"),
])  # fmt: skip
def test_a_drain_or_quarantine_of_more_than_a_fifth_waits_for_another_person(nodes, chosen, kind, state):
    operation = begin(nodes[:chosen], kind)

    assert operation.state == state
    assert bool(operation.preview["approvals"]) == (state == "proposed")


def test_a_single_node_and_a_pool_that_is_not_production_wait_for_nobody(nodes):
    small = a_pool(nodes[0].cluster, "small", environment="production")
    test = a_pool(nodes[0].cluster, "test", environment="test")

    assert begin([a_node(small.cluster, "gpu-s", pool=small)]).state == OperationState.RUNNING
    assert begin([a_node(test.cluster, f"gpu-t{each}", pool=test) for each in range(2)]).state == "running"


def test_operations_of_one_person_within_a_day_count_together(nodes):
    """Three drains of one node each are a drain of three nodes."""
    begin(nodes[:1])
    first = begin(nodes[1:2], "drain")
    assert begin(nodes[2:3], actor="bob").state == OperationState.RUNNING
    third = begin(nodes[3:4])

    assert third.state == OperationState.PROPOSED
    (sentence,) = third.preview["approvals"]
    assert "1 of 10 nodes is chosen, beside 2 of the same person within 24 h. More than 20 % needs" in sentence
    commands.cancel(third, actor="ada", reason="Later.", now=NOON)
    commands.cancel(first, actor="ada", reason="Back in service.", now=NOON)
    assert begin(nodes[4:5]).state == OperationState.RUNNING
    assert begin(nodes[5:6], now=NOON + SUMMED * 1.1).state == OperationState.RUNNING


def test_nothing_is_written_before_another_person_approves(nodes):
    operation = begin(nodes[:3])
    run_operation(operation.pk, owner="worker", clock=lambda: NOON)
    assert not Quarantine.objects.exists()
    with pytest.raises(NotAllowed, match="another person approves"):
        commands.approve(operation, actor="ada", reason="Go.", now=NOON)
    with pytest.raises(IllegalMove):
        commands.resume(operation, actor="ada", reason="Go.", now=NOON)
    commands.approve(operation, actor="amy", reason="Go.", now=NOON)

    assert Operation.objects.get().state == OperationState.RUNNING
    entry = AuditEntry.objects.get(verb="operation.approve")
    assert (entry.actor, entry.subject) == ("amy", operation.mark)
    with pytest.raises(IllegalMove):
        commands.approve(Operation.objects.get(), actor="bob", reason="Me too.", now=NOON)


def test_an_approval_binds_the_impact_that_was_seen(nodes):
    """R49: a changed impact is shown again."""
    operation = begin(nodes[:3])
    with pytest.raises(
        OperationRefused, match=r"The impact changed. It is now: 3 nodes, 24 GPUs\. Running pods stay\."
    ):
        commands.approve(operation, actor="amy", reason="Go.", seen="1 node, 8 GPUs.", now=NOON)
    Node.objects.filter(pk=nodes[0].pk).delete()
    with pytest.raises(OperationRefused, match="One of its nodes left the cluster"):
        commands.approve(operation, actor="amy", reason="Go.", now=NOON)
    later = NOON + commands.APPROVED_WITHIN * 2
    with pytest.raises(OperationRefused, match="Cancel the operation and start another"):
        commands.approve(operation, actor="amy", reason="Go.", now=later)
    commands.cancel(operation, actor="ada", reason="Later.", now=NOON)

    with pytest.raises(IllegalMove):
        commands.approve(Operation.objects.get(), actor="amy", reason="Go.", now=NOON)


def test_pages_and_rest_show_the_proposal_to_approvers_only(nodes):
    ada, amy = a_user("ada", role="operator"), a_user("amy", role="approver")
    asked = {"cluster": nodes[0].cluster_id, "kind": "drain", "nodes": [node.uid for node in nodes[:3]]}
    asked |= {"reason": "Power work.", "typed_count": 3}
    made = calling(ada).post("/api/v1/operations", asked, format="json").json()
    path = f"/operations/{made['id']}"
    assert made["state"] == "proposed"
    assert "3 of 10 nodes are chosen. More than 20 % needs" in page(visiting(ada), path).text
    assert "Impact now: 3 nodes, 24 GPUs" in page(visiting(amy), path).text
    refused = calling(ada).post(f"/api/v1{path}/approvals", {"reason": "Go."}, format="json")
    assert refused.status_code == 403
    bad = {"reason": "Go.", "seen": "1 node."}
    assert calling(amy).post(f"/api/v1{path}/approvals", bad, format="json").status_code == 409
    assert calling(amy).post(f"/api/v1{path}/approvals", {"reason": "Go."}, format="json").status_code == 204

    assert Operation.objects.get().state == OperationState.RUNNING


def test_a_retry_that_loses_to_a_cancel_changes_nothing(nodes):
    operation = begin(nodes[:2])
    operation.nodes.update(state=NodeProgress.FAILED)
    commands.cancel(Operation.objects.get(pk=operation.pk), actor="bob", reason="No.", now=NOON)

    with pytest.raises(LostRace):
        commands.retry(operation, actor="ada", reason="Again.", now=NOON)

    assert set(operation.nodes.values_list("state", flat=True)) == {NodeProgress.FAILED}
    assert not AuditEntry.objects.filter(verb="operation.retry").exists()


def test_a_cancel_ends_no_place_of_a_node_that_ended_before_it(nodes, monkeypatch: pytest.MonkeyPatch):
    """The move of the operation waits for the round of a worker, which ends nodes."""
    operation = begin(nodes[:2])
    for node in nodes[:2]:
        Disruption.objects.create(
            cluster=node.cluster, node_uid=node.uid, node_name=node.name, taken_by=operation.mark, taken_at=NOON,
            was_in_service=True,
        )  # fmt: skip
    move = Operation.move

    def move_after_a_round(self: Operation, *args: Any, **given: Any) -> None:
        operation.nodes.filter(node_uid=nodes[0].uid).update(state=NodeProgress.DONE)
        move(self, *args, **given)

    monkeypatch.setattr(Operation, "move", move_after_a_round)
    commands.cancel(Operation.objects.get(pk=operation.pk), actor="bob", reason="No.", now=NOON)

    assert list(operation.nodes.order_by("pk").values_list("state", flat=True)) == ["done", "cancelled"]
    assert [each.node_name for each in Disruption.objects.in_force()] == ["gpu-0"]
