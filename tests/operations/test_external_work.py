"""Work of remediators and machine controllers: waited for, named, or not looked at (lifecycle R18)."""

import pytest

from fleet.models import Cluster, ClusterMode, Node
from kube import client
from operations import external_work, operation_round
from operations.external_owner import external_owner_of, not_looked_at
from operations.external_work import queue_looks, record_work
from operations.impact import impact_of
from operations.models import ExternalWork
from operations.steps.uncordon import UncordonStep
from simulator.actors.repairers import (
    FENCE_AGENTS_REMEDIATION,
    MACHINE,
    NODE_HEALTH_CHECK,
    SELF_NODE_REMEDIATION,
    remediation_definitions,
)
from simulator.kinds import DEFINITION, NAMESPACE
from tests.operations.test_rounds import a_pod, begin, is_cordoned, node, rounds, terminating
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = pytest.mark.django_db
NOT_YET = "The work of remediators and machine controllers has not been checked yet."
STARTED = {"resource": {"kind": "SelfNodeRemediation", "name": CANARY}, "started": "2026-11-30T12:00:00Z"}
CHECKED = {"name": "workers"}, {"unhealthyNodes": [{"name": CANARY, "remediations": [STARTED]}]}
REMEDIATED = {"name": CANARY, "namespace": "medik8s"}, {"conditions": [{"type": "Processing", "status": "True"}]}
AWAITED = {"conditions": [{"type": "OwnerRemediated", "status": "False", "reason": "WaitingForRemediation"}]}
REPLACED = {"name": "md-0-abc", "namespace": "medik8s"}, {"nodeRef": {"name": CANARY}, **AWAITED}


@pytest.fixture
def ground(ground: Ground) -> Ground:
    for definition in remediation_definitions():
        ground.store.create(DEFINITION, definition)
    ground.store.seed(NAMESPACE, {"metadata": {"name": "medik8s"}})
    return ground


def put(ground: Ground, kind, metadata, status) -> None:
    space = metadata.get("namespace", "")
    ground.store.create(kind, {"metadata": metadata, "spec": {}}, space)
    ground.store.patch(kind, metadata["name"], {"status": status}, space, how="merge", subresource="status")


def take_away(ground: Ground, kind, metadata) -> None:
    ground.store.delete(kind, metadata["name"], metadata.get("namespace", ""))
    record_work(ground.cluster.pk, now=ground.clock())


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        (NODE_HEALTH_CHECK, CHECKED, "Node Health Check remediates the node (NodeHealthCheck workers)"),
        (SELF_NODE_REMEDIATION, REMEDIATED,
         f"Self Node Remediation reboots the node (SelfNodeRemediation medik8s/{CANARY})"),
        (FENCE_AGENTS_REMEDIATION, REMEDIATED,
         f"Fence Agents Remediation fences the node (FenceAgentsRemediation medik8s/{CANARY})"),
        (MACHINE, REPLACED, "Cluster API remediates the machine of the node (Machine medik8s/md-0-abc)"),
    ],
)  # fmt: skip
def test_a_drain_waits_for_the_work_of_another_controller_and_names_it(ground: Ground, kind, given, why: str):
    put(ground, kind, *given)
    record_work(ground.cluster.pk, now=ground.clock())
    operation = rounds(ground, begin(ground, "drain", CANARY))
    assert node(operation).reason.startswith(f"Held by another: {why}.")
    assert (node(operation).state, is_cordoned(ground), terminating(ground)) == ("pending", False, [])
    held_since = node(operation).progress["held_since"]
    assert node(rounds(ground, operation)).progress == {"held_since": held_since}

    take_away(ground, kind, given[0])
    rounds(ground, operation)
    assert is_cordoned(ground)


def test_a_release_waits_too_and_the_preview_says_why(ground: Ground):
    rounds(ground, begin(ground, "quarantine", CANARY))
    put(ground, SELF_NODE_REMEDIATION, *REMEDIATED)
    record_work(ground.cluster.pk, now=ground.clock())
    assert node(rounds(ground, begin(ground, "release", CANARY))).reason.startswith("Held by another: Self Node")
    assert is_cordoned(ground)
    nodes = list(Node.objects.filter(name=CANARY))
    impact = impact_of(ground.cluster, nodes, ("cordon", "drain"), actor="ada", now=ground.clock())
    assert any(each.startswith(f"{CANARY} is held by another: Self Node") for each in impact.warnings)


def test_nodes_behind_held_ones_have_a_turn(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operation_round, "WINDOW", 1)
    monkeypatch.setattr(operation_round, "TRIES", 1)
    put(ground, MACHINE, *REPLACED)
    record_work(ground.cluster.pk, now=ground.clock())
    operation = rounds(ground, begin(ground, "drain", CANARY, *REST, options={"at_once": 1}), 2)
    states = dict(operation.nodes.values_list("node_name", "state"))
    assert (states[CANARY], sorted(states[name] for name in REST)) == ("pending", ["pending", "running"])


@pytest.mark.parametrize("is_over", [False, True])
def test_a_drain_pauses_where_a_remediation_marks_the_node_until_its_deadline(ground: Ground, is_over: bool):
    a_pod(ground, "web")
    operation = rounds(ground, begin(ground, "drain", CANARY, options={"deadline_s": 600}))
    asked = len(terminating(ground))
    taint = {"key": "remediation.medik8s.io/self-node-remediation", "effect": "NoSchedule"}
    ground.patch_node(CANARY, {"spec": {"taints": [taint]}})
    ground.clock.move(minutes=11 if is_over else 0)
    row = node(rounds(ground, operation))
    assert row.state == ("failed" if is_over else "running")
    start = "Drain blocked. " if is_over else "Held by another: "
    assert row.reason.startswith(f"{start}Self Node Remediation reboots the node")
    assert row.progress["of"] >= 1, "the progress so far stays"
    assert len(terminating(ground)) == asked


def test_a_kind_that_may_not_be_listed_is_not_looked_at(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    put(ground, NODE_HEALTH_CHECK, *CHECKED)
    really = client.list_pages

    def listed(connection, resource, **given):
        if resource.title == "Machine":
            raise client.Forbidden("machines.cluster.x-k8s.io is forbidden.")
        return really(connection, resource, **given)

    monkeypatch.setattr(external_work.client, "list_pages", listed)
    nodes = list(Node.objects.filter(name=CANARY))
    assert list(not_looked_at(nodes, now=ground.clock())) == [NOT_YET]
    record_work(ground.cluster.pk, now=ground.clock())
    assert list(not_looked_at(nodes, now=ground.clock())) == [
        "Machines were not checked: Quarterdeck may not list them."
    ]
    assert list(ExternalWork.objects.get().by_node) == [CANARY], "the other kinds were"


def test_machines_of_a_management_cluster_are_not_looked_at(ground: Ground):
    ground.store.delete(DEFINITION, MACHINE.resource)
    record_work(ground.cluster.pk, now=ground.clock())
    assert list(not_looked_at(list(Node.objects.filter(name=CANARY)), now=ground.clock())) == []
    Node.objects.filter(name=CANARY).update(annotations={"cluster.x-k8s.io/machine": "md-0-abc"})
    (said,) = not_looked_at(list(Node.objects.filter(name=CANARY)), now=ground.clock())
    assert said == f"The Machines of {CANARY} were not checked: they are in another cluster."


def test_a_silent_cluster_forgets_no_work(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    put(ground, NODE_HEALTH_CHECK, *CHECKED)
    record_work(ground.cluster.pk, now=ground.clock())

    def silent(*_, **__):
        raise client.Silent("No answer.")

    monkeypatch.setattr(external_work.client, "find_kinds", silent)
    record_work(ground.cluster.pk, now=ground.clock())
    assert list(ExternalWork.objects.get().by_node) == [CANARY]


def test_work_that_was_not_listed_for_minutes_carries_its_time(ground: Ground):
    """Z42."""
    put(ground, MACHINE, *REPLACED)
    record_work(ground.cluster.pk, now=ground.clock())
    nodes = list(Node.objects.filter(name=CANARY))
    assert "As of" not in external_owner_of(nodes[0], now=ground.clock()).sentence
    seen_at = f"{ground.clock():%Y-%m-%d %H:%M} UTC"
    ground.clock.move(minutes=6)

    assert external_owner_of(nodes[0], now=ground.clock()).sentence.endswith(
        f" As of {seen_at}: its objects were not listed since."
    )
    assert list(not_looked_at(nodes, now=ground.clock())) == [
        f"The work of remediators and machine controllers was last checked at {seen_at}."
    ]


def test_work_in_a_cluster_that_nobody_lists_any_more_is_unknown(ground: Ground):
    put(ground, MACHINE, *REPLACED)
    record_work(ground.cluster.pk, now=ground.clock())
    Cluster.objects.update(mode=ClusterMode.OBSERVE_ONLY)
    nodes = list(Node.objects.filter(name=CANARY))

    assert external_owner_of(nodes[0], now=ground.clock()) is None
    assert list(not_looked_at(nodes, now=ground.clock())) == [NOT_YET]


def test_the_work_on_pending_nodes_is_read_at_once(ground: Ground, django_assert_num_queries):
    names = (CANARY, *REST)
    rounds(ground, begin(ground, "quarantine", *names), 2)
    ground.look()
    put(ground, MACHINE, *REPLACED)
    record_work(ground.cluster.pk, now=ground.clock())
    pending = list(begin(ground, "release", *names).nodes.all())

    with django_assert_num_queries(4):
        held = UncordonStep().why_not_begin(pending, now=ground.clock())
    assert [node.node_name for node in pending if node.node_uid in held] == [CANARY]


def test_a_cluster_is_looked_at_once_a_minute(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    queued: list[dict] = []
    monkeypatch.setattr(external_work.wake, "queue", lambda *_, kwargs, **__: queued.append(kwargs))
    for seconds in (0, 30, 31):
        ground.clock.move(seconds=seconds)
        queue_looks(now=ground.clock())
    assert queued == [{"cluster_id": ground.cluster.pk}] * 2
