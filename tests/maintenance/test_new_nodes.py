"""New nodes with rows and a real API server: who is held, each state, and every path out without a mark."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from config.celery import app
from edges.transition_errors import LostRace
from fleet.models import ClusterMode, GoneNode, Node, Pod, PodPlacement, Pool
from maintenance import commands, new_node_round, new_nodes, tasks
from maintenance.case_round import follow_cases
from maintenance.findings import UNHELD, WAITING
from maintenance.lifecycle import CaseState
from maintenance.models import NewNodeGate, NodeCase
from maintenance.new_node_round import run_new_nodes
from maintenance.new_node_settings import GateSettings, set_gate, settings_version
from maintenance.new_nodes import ACTOR, facts_of_gate
from maintenance.queries import facts_of, wanted_test, why_no_validation
from maintenance.refusals import BadNewNodeGate, CaseRefused
from operations.commands import cancel
from operations.ledger.disruptions import read_budgets, record_disruptions
from operations.models import Disruption, Freeze, NodeTestJob, Operation, Quarantine
from operations.operation_round import end_gone_quarantines
from operations.quarantine_round import follow_quarantines
from operations.refusals import OperationRefused
from operations.steps import cordon
from people.models import AuditEntry
from simulator.kinds import NODE, POD
from tests.callers import calling
from tests.make import NOON, a_case, a_cluster, a_node, a_placement, a_pod, a_pool, a_user
from tests.operations.test_rounds import a_pod as in_cluster
from tests.operations.test_rounds import begin, is_cordoned, rounds
from tests.operations.test_test_job_step import ends, finished
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
BEFORE, JOINED = NOON - timedelta(minutes=20), NOON - timedelta(minutes=5)
GIVEN: dict[str, Any] = {"changed_by": "root", "changed_at": BEFORE, "reason": "New racks."}


def a_gate(pool: Pool, **given: Any) -> NewNodeGate:
    return NewNodeGate.objects.create(pool=pool, **{"on_since": BEFORE, "test": "dcgm-3"} | GIVEN | given)


def a_gated_pool(**given: Any) -> Pool:
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE), max_unavailable=1)
    a_gate(pool, **given)
    return pool


def held() -> list[str]:
    return list(NodeCase.objects.filter(is_new=True).order_by("node_name").values_list("node_name", flat=True))


def test_only_a_node_that_joined_lately_and_never_served_is_held():
    pool = a_gated_pool()
    new = {"pool": pool, "created_at": JOINED}
    a_node(pool.cluster, "gpu-new", **new)
    a_node(pool.cluster, "gpu-before", pool=pool, created_at=BEFORE - timedelta(minutes=1))
    a_node(pool.cluster, "gpu-cordoned", is_unschedulable=True, **new)
    a_node(pool.cluster, "gpu-elsewhere", created_at=JOINED)
    serving = a_node(pool.cluster, "gpu-serving", **new)
    a_pod(serving, "job-0", gpus=1)
    served = a_node(pool.cluster, "gpu-served", **new)
    PodPlacement.objects.create(
        cluster=pool.cluster, node_uid=served.uid, node_name="gpu-served", pod_uid="x", namespace="x", name="x",
        since=JOINED, until=NOON,
    )  # fmt: skip
    sick = a_node(pool.cluster, "gpu-sick", **new)
    a_case(sick)

    run_new_nodes(now=NOON)
    run_new_nodes(now=NOON)

    assert held() == ["gpu-new"]
    (operation,) = Operation.objects.all()
    assert (operation.kind, operation.asked_by, operation.options["is_new_node"]) == ("quarantine", ACTOR, True)
    case = NodeCase.objects.get(is_new=True)
    assert (case.state, case.needed_test) == (CaseState.PROVISIONED, "dcgm-3")
    assert case.moves.get().verb == "case.opened"


def test_nodes_that_join_together_are_held_by_one_operation():
    pool = a_gated_pool()
    new = {"pool": pool, "created_at": JOINED}
    for number in range(12):
        a_node(pool.cluster, f"gpu-{number:02}", **new)

    run_new_nodes(now=NOON)

    (operation,) = Operation.objects.all()
    assert (len(held()), operation.nodes.count(), operation.state) == (12, 12, "running")
    assert operation.options["failures_accepted"] == 12, "nodes that serve already fail, and pause nothing"


def test_one_refused_node_does_not_keep_the_others_from_being_held():
    pool = a_gated_pool()
    control = {"node-role.kubernetes.io/control-plane": ""}
    a_node(pool.cluster, "gpu-0", pool=pool, created_at=JOINED)
    a_node(pool.cluster, "gpu-1", pool=pool, created_at=JOINED, labels=control)

    run_new_nodes(now=NOON)

    assert held() == ["gpu-0"]
    assert NewNodeGate.objects.get().refused_node == "gpu-1"


@pytest.mark.parametrize("given", [{"on_since": None}, {"on_since": NOON}])
def test_nothing_is_held_while_the_gate_is_off_or_before_it(given: dict[str, Any]):
    pool = a_gated_pool(**given)
    a_node(pool.cluster, "gpu-new", pool=pool, created_at=JOINED)
    run_new_nodes(now=NOON)
    assert held() == []


def unseen_pods(node: Node) -> None:
    node.cluster.bookmarks.filter(kind="pods").update(last_seen_at=BEFORE)


def a_freeze(node: Node) -> None:
    Freeze.objects.create(reason="Launch.", by="ada", at=NOON, cluster=node.cluster)


def a_plan_changes_it(node: Node) -> None:
    record_disruptions(node.cluster_id, {node.uid: node.name}, by="plan-7", now=NOON)


def is_upgraded(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(upgrade_state="pod-restart-required")


@pytest.mark.parametrize("hinder", [unseen_pods, a_freeze, a_plan_changes_it, is_upgraded])
def test_nothing_is_held_that_is_not_seen_or_not_free(hinder: Callable[[Node], None]):
    pool = a_gated_pool()
    hinder(a_node(pool.cluster, "gpu-new", pool=pool, created_at=JOINED))
    run_new_nodes(now=NOON)
    assert held() == []


def test_a_case_says_when_its_pods_are_not_seen_and_nothing_old_after_a_hand_over():
    """Z25: "no tenant" is not believed."""
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-new", pool=pool, is_unschedulable=True)
    case = a_case(node, is_new=True, automatic_at=NOON, state=CaseState.LABELLED, needed_test="dcgm-3")
    unseen_pods(node)
    run_new_nodes(now=NOON)
    case.refresh_from_db()
    assert "ods" in case.waits_for
    assert not Operation.objects.exists()

    case.hand_over("", actor=ACTOR, reason="2 tests without a pass.", now=NOON)
    assert NodeCase.objects.get().waits_for == ""


def test_an_older_release_does_not_close_a_new_case():
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-new", pool=pool, created_at=JOINED)
    release = Operation.objects.create(
        cluster=pool.cluster, steps=["uncordon"], state="finished", state_since=JOINED, reason="Back.", asked_by="ada",
        asked_at=JOINED, next_look_at=JOINED, lease_until=JOINED,
    )  # fmt: skip
    its = {"node_uid": node.uid, "node_name": node.name, "state": "done", "state_since": JOINED, "step_since": JOINED}
    release.nodes.create(position=0, **its)
    run_new_nodes(now=NOON)
    follow_cases(now=NOON)
    assert NodeCase.objects.get().state == CaseState.PROVISIONED


def test_a_hold_that_does_not_start_is_a_finding():
    pool = a_gated_pool()
    a_node(pool.cluster, "gpu-new", pool=pool, created_at=JOINED)
    run_new_nodes(now=NOON)
    assert Operation.objects.get().nodes.get().state == "pending"
    assert list(WAITING.say(pool.cluster, now=NOON + timedelta(minutes=29))) == []
    assert len(list(WAITING.say(pool.cluster, now=NOON + timedelta(minutes=31)))) == 1


def test_a_node_is_not_held_twice():
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-new", pool=pool, created_at=JOINED)
    a_case(node, is_new=True, state=CaseState.CLOSED)
    run_new_nodes(now=NOON)
    assert not Operation.objects.exists()


def test_a_round_that_lost_the_gate_holds_nothing(monkeypatch: pytest.MonkeyPatch):
    """A person switches it off between the look and the act."""
    pool = a_gated_pool()
    a_node(pool.cluster, "gpu-new", pool=pool, created_at=JOINED)
    asked = new_node_round.tenants_of

    def switch_off(nodes: list[Node]) -> Any:
        NewNodeGate.objects.update(on_since=None, epoch=7)
        return asked(nodes)

    monkeypatch.setattr(new_node_round, "tenants_of", switch_off)
    run_new_nodes(now=NOON)
    assert (held(), Operation.objects.count()) == ([], 0)


def test_a_refused_hold_adopts_no_newer_gate(monkeypatch: pytest.MonkeyPatch):
    """A person switches the gate off while an operation is refused."""
    pool = a_gated_pool()
    for name in ("gpu-1", "gpu-2"):
        a_node(pool.cluster, name, pool=pool, created_at=JOINED)

    def refuse(*_: Any, **__: Any) -> None:
        raise OperationRefused("An approval is missing.")

    def switch_off(*_: Any, **__: Any) -> None:
        NewNodeGate.objects.update(on_since=None, epoch=7)

    monkeypatch.setattr(new_node_round.operations, "start", refuse)
    monkeypatch.setattr(new_node_round, "log", SimpleNamespace(info=switch_off))
    gate = NewNodeGate.objects.select_related("pool__cluster").get()
    with pytest.raises(LostRace):
        new_node_round._hold_joined(gate, now=NOON)
    assert held() == []


def test_a_refused_hold_is_stored_with_its_reason(monkeypatch: pytest.MonkeyPatch):
    pool = a_gated_pool()
    a_node(pool.cluster, "gpu-1", pool=pool, created_at=JOINED)

    def refuse(*_: Any, **__: Any) -> None:
        raise OperationRefused("An approval is missing.")

    monkeypatch.setattr(new_node_round.operations, "start", refuse)
    run_new_nodes(now=NOON)
    gate = NewNodeGate.objects.get()
    assert (gate.refused_node, gate.refusal, gate.refused_at) == ("gpu-1", "An approval is missing.", NOON)
    assert held() == []


def test_a_step_that_a_person_overtakes_starts_nothing(monkeypatch: pytest.MonkeyPatch):
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-new", pool=pool, is_unschedulable=True)
    case = a_case(node, is_new=True, automatic_at=NOON, state=CaseState.LABELLED, needed_test="dcgm-3")
    choice = new_node_round.GateChoice(new_node_round.GateStep.TEST, "It is time.")
    NodeCase.objects.update(handed_over_at=NOON, handed_over_to="ada")
    facts = new_node_round.facts_of([case])[case.pk]
    with pytest.raises(LostRace, match="a person took it over"):
        new_node_round._carry_out(case, facts, choice, now=NOON)
    assert not Operation.objects.exists()


def test_a_new_node_takes_no_place_of_a_budget(ground: Ground):
    """lifecycle R42: it was never in service."""
    pool = its_pool(ground)
    hold(ground, pool)
    assert is_cordoned(ground)
    other = Node.objects.filter(cluster=ground.cluster, pools=pool).exclude(name=CANARY)[0].name
    assert read_budgets(ground.cluster.pk, [other], is_rollback=False).why_not([other]) == ""


def budget_of(pool: Pool, name: str) -> str:
    return read_budgets(pool.cluster_id, [name], is_rollback=False).why_not([name])


def test_a_new_node_counts_once_somebody_drains_it():
    pool = a_gated_pool()
    new, _ = (a_node(pool.cluster, name, pool=pool) for name in ("gpu-new", "gpu-other"))
    its = {"taking": {new.uid: new.name}, "by": "operation-1", "now": NOON}
    record_disruptions(pool.cluster_id, **its, is_budgeted=False, was_in_service=False)
    assert budget_of(pool, "gpu-other") == ""
    record_disruptions(pool.cluster_id, **its, is_budgeted=False)  # a person tests it
    assert budget_of(pool, "gpu-other") == ""
    record_disruptions(pool.cluster_id, **its)
    assert "gpu-new" in budget_of(pool, "gpu-other")


def test_a_later_node_of_the_same_name_takes_its_place():
    pool = a_gated_pool()
    a_node(pool.cluster, "gpu-new", pool=pool, is_ready=False)
    a_node(pool.cluster, "gpu-other", pool=pool)
    taking = {"uid-before": "gpu-new"}
    record_disruptions(pool.cluster_id, taking, by="operation-1", is_budgeted=False, was_in_service=False, now=NOON)
    assert "gpu-new" in budget_of(pool, "gpu-other")


def test_the_gate_has_rounds_of_its_own(monkeypatch: pytest.MonkeyPatch):
    """An error in automatic quarantine does not stop it."""
    called: list[str] = []
    monkeypatch.setattr(tasks, "run_new_nodes", lambda **_: called.append("gate"))
    monkeypatch.setattr(tasks, "run_automatic_quarantine", lambda **_: called.append("quarantine"))
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert tasks.sweep_new_nodes.name in scheduled
    tasks.sweep_new_nodes()
    assert called == ["gate"]


def its_pool(ground: Ground) -> Pool:
    pool = a_pool(ground.cluster, max_unavailable=1)
    pool.nodes.set(Node.objects.filter(cluster=ground.cluster, is_gpu_node=True))
    return pool


def hold(
    ground: Ground, pool: Pool, *, before_the_cordon: Callable[[Ground], None] = lambda _: None, **given: Any
) -> NodeCase:
    """Returns the case of a node that joined and was cordoned."""
    a_gate(pool, on_since=ground.clock() - timedelta(hours=1), **given)
    tenants = Pod.objects.filter(node_name=CANARY).tenants()
    for pod in tenants:
        ground.store.delete(POD, pod.name, pod.namespace, grace_s=0)
    tenants.delete()
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(created_at=ground.clock() - timedelta(minutes=1))
    run_new_nodes(now=ground.clock())
    before_the_cordon(ground)
    rounds(ground, Operation.objects.get())
    return go_on(ground)


def go_on(ground: Ground) -> NodeCase:
    """The node is observed again, and both rounds run."""
    ground.clock.move(seconds=1)
    ground.cluster.bookmarks.update(last_seen_at=ground.clock(), listed_at=ground.clock())
    node = Node.objects.filter(cluster=ground.cluster, name=CANARY)
    node.update(is_unschedulable=is_cordoned(ground))
    follow_cases(now=ground.clock())
    run_new_nodes(now=ground.clock())
    return NodeCase.objects.get(is_new=True)


def passes_test(ground: Ground) -> None:
    rounds(ground, Operation.objects.latest("pk"))
    ends(ground)
    finished(ground, Operation.objects.latest("pk"))
    for _ in range(2):
        go_on(ground)
    rounds(ground, Operation.objects.latest("pk"))


def serves_already(ground: Ground) -> None:
    a_pod(Node.objects.get(cluster=ground.cluster, name=CANARY), "early", gpus=1)
    go_on(ground)
    rounds(ground, Operation.objects.latest("pk"))


def person_returns_it(ground: Ground) -> None:
    commands.override(NodeCase.objects.get(), actor="ada", reason="Known good.", now=ground.clock())
    rounds(ground, begin(ground, "release", CANARY))


def somebody_uncordons_it(ground: Ground) -> None:
    ground.store.patch(NODE, CANARY, {"spec": {"unschedulable": None}}, how="merge")
    go_on(ground)
    follow_quarantines(clock=ground.clock)
    assert Disruption.objects.in_force().get(node_name=CANARY).was_in_service  # pods may start there
    go_on(ground)
    rounds(ground, begin(ground, "accept-uncordon", CANARY))


def a_pod_runs(ground: Ground) -> None:
    main = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    in_cluster(ground, "early", containers=[main])


def a_pod_ran(ground: Ground) -> None:
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    a_placement(node, "early", since=ground.clock(), until=ground.clock())


@pytest.mark.parametrize("serves", [a_pod_runs, a_pod_ran])
def test_a_node_that_served_before_the_cordon_is_not_cordoned(ground: Ground, serves: Callable[[Ground], None]):
    """The operation waited, and pods started meanwhile."""
    before = ground.node(CANARY)
    hold(ground, its_pool(ground), before_the_cordon=serves)
    case = go_on(ground)

    assert ground.node(CANARY) == before
    assert (case.state, case.state_reason[:12]) == (CaseState.CLOSED, "team-a/early")
    assert not Quarantine.objects.in_force().exists()


def test_a_hold_that_is_cancelled_while_its_pods_are_listed_writes_nothing(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    """L1: nothing is asked between the last check and the write."""

    def cancel_it(_: Any) -> str:
        cancel(Operation.objects.get(), actor="ada", reason="Stop.", now=ground.clock())
        return ""

    monkeypatch.setattr(cordon, "pod_served", cancel_it)
    before = ground.node(CANARY)
    hold(ground, its_pool(ground))
    assert ground.node(CANARY) == before


@pytest.mark.parametrize("path", [passes_test, serves_already, person_returns_it, somebody_uncordons_it])
def test_every_path_out_leaves_no_mark(ground: Ground, monkeypatch: pytest.MonkeyPatch, path: Callable[[Ground], None]):
    """lifecycle R4: the node is as before, but for the history."""
    monkeypatch.setattr(new_nodes, "_lacks", lambda *_, **__: "")  # the checklist has its own tests
    before = ground.node(CANARY)
    case = hold(ground, its_pool(ground))
    if path is not serves_already:
        for _ in range(3):
            case = go_on(ground)
        assert case.state == CaseState.LABELLED

    path(ground)
    case = go_on(ground)

    assert case.state == CaseState.CLOSED
    assert case.state_reason
    after = ground.node(CANARY)
    assert after["spec"] == before["spec"]
    assert (after["metadata"].get("annotations") or {}) == (before["metadata"].get("annotations") or {})
    assert after["metadata"]["labels"] == before["metadata"]["labels"]
    assert not Quarantine.objects.in_force().exists()
    assert not NodeTestJob.objects.in_the_cluster().exists()


def test_a_failed_test_leaves_the_node_to_a_person(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(new_nodes, "_lacks", lambda *_, **__: "")
    hold(ground, its_pool(ground))
    for _ in range(3):
        go_on(ground)
    rounds(ground, Operation.objects.latest("pk"))
    ends(ground, exit_code=226)
    finished(ground, Operation.objects.latest("pk"))
    go_on(ground)
    case = go_on(ground)
    assert case.state == CaseState.QUARANTINED
    assert case.handed_over_reason.startswith("The test workload failed")
    assert is_cordoned(ground)


def test_a_held_node_that_left_ends_its_case(ground: Ground):
    case = hold(ground, its_pool(ground))
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    GoneNode.objects.create(cluster=ground.cluster, node_id=node.pk, uid=node.uid, name=CANARY, gone_at=ground.clock())
    node.delete()
    end_gone_quarantines(now=ground.clock())
    follow_cases(now=ground.clock())
    case.refresh_from_db()
    assert case.state == CaseState.RETIRED
    assert not Quarantine.objects.in_force().exists()


def test_the_gate_names_what_a_node_lacks():
    pool = a_gated_pool(labels=["team", "rack=7"], taints=["gpu=new:NoSchedule", "dedicated:NoExecute"])
    other = a_pool(pool.cluster, "other")  # the node has another pool by now
    a_gate(other)
    given = {"labels": {"team": "ml"}, "taints": [{"key": "gpu", "value": "new", "effect": "NoSchedule"}]}
    node = a_node(pool.cluster, "gpu-2", pool=other, gpus=8, gpu_product="NVIDIA-H200", **given)
    case = a_case(node, is_new=True, state=CaseState.PROVISIONED, gate=pool.new_node_gate)
    facts = facts_of_gate([case], now=NOON)[case.pk]
    assert facts.unlabelled == "Labels that the pool wants: rack=7. Taints that the pool wants: dedicated:NoExecute."
    assert facts.lacks  # no operand was ever seen: an unknown answer is no pass
    assert ": unknown." in facts.lacks or ": no." in facts.lacks


def test_a_node_whose_pool_was_deleted_goes_to_a_person():
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-1", pool=pool, is_unschedulable=True)
    case = a_case(node, is_new=True, state=CaseState.PROVISIONED, gate=pool.new_node_gate)
    pool.delete()
    case.refresh_from_db()
    assert not facts_of_gate([case], now=NOON)[case.pk].has_gate


@pytest.mark.parametrize(
    ("peers", "given", "is_short"),
    [
        ([8], {"gpus": 8}, False),
        ([8], {"gpus": 7}, True),
        ([8, 4], {"gpus": 4}, False),  # of another size: nothing names its type
        ([8, 4], {"gpus": 4, "instance_type": "p5"}, True),
        ([], {"gpus": 4}, False),
        ([8], {"gpus": 0, "slices_expected": 7, "slices_allocatable": 7, "physical_gpus": 8}, False),
        ([8], {"gpus": 0, "slices_expected": 7, "slices_allocatable": 7, "physical_gpus": 7}, True),
    ],
)
def test_a_node_has_as_many_gpus_as_its_peers(peers: list[int], given: dict[str, Any], is_short: bool):
    cluster = a_cluster()
    product = {"gpu_product": "NVIDIA-H200", "instance_type": given.get("instance_type", "")}
    for number, gpus in enumerate(peers):
        a_node(cluster, f"gpu-old-{number}", gpus=gpus, **product)
    a_node(cluster, "gpu-mig", gpus=9, slices_expected=7, **product)
    node = a_node(cluster, "gpu-new", **product | given)
    found = new_nodes._gpus_of_peers([node]).get(new_nodes._kind_of(node), ())
    assert ("Others with NVIDIA-H200 offer" in new_nodes._lacks(node, [], found)) is is_short


MPS = {"allocatable": {"nvidia.com/gpu": 32}, "shares_expected": 32, "layout": "gpu=whole/mps*4", "physical_gpus": 8}
MIG = {"allocatable": {"nvidia.com/gpu": 14}, "slices_expected": 14, "layout": "gpu=1g.10gb", "physical_gpus": 2}


def test_a_node_whose_gpus_no_test_has_goes_to_a_person():
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-1", pool=pool, **MPS)
    case = a_case(node, is_new=True, state=CaseState.PROVISIONED, gate=pool.new_node_gate)
    assert "no test has all 8 GPUs" in facts_of_gate([case], now=NOON)[case.pk].is_untestable


@pytest.mark.parametrize(
    ("offered", "lacks"),
    [
        ({"nvidia.com/gpu": 0}, "Missing: 14 slices 1g.10gb"),  # while the MIG manager reconfigures
        ({}, "Missing: 14 slices 1g.10gb"),
    ],
)
def test_a_new_node_waits_for_what_it_does_not_offer_yet(offered: dict[str, int], lacks: str, monkeypatch):
    monkeypatch.setattr(new_nodes, "checklist_of", lambda *_: [])
    pool = a_gated_pool()
    given = MIG | {"allocatable": offered, "expected": {"nvidia.com/gpu": 14}, "mig_config_state": "pending"}
    node = a_node(pool.cluster, "gpu-1", pool=pool, **given)
    case = a_case(node, is_new=True, state=CaseState.PROVISIONED, gate=pool.new_node_gate)
    facts = facts_of_gate([case], now=NOON)[case.pk]
    assert (facts.is_untestable, facts.lacks.startswith(lacks)) == ("", True)
    with CaptureQueriesContext(connection) as asked:
        set_gate(pool, GateSettings(is_on=True, test="dcgm-3"), actor="root", reason="x", now=NOON)
    (of_nodes,) = [each["sql"] for each in asked if '"allocatable"' in each["sql"]]
    assert '"labels"' not in of_nodes, "a pool may have thousands of nodes"


def test_a_new_node_with_mig_is_tested_on_each_device():
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-1", pool=pool, **MIG)
    case = a_case(
        node, is_new=True, state=CaseState.LABELLED, gate=pool.new_node_gate, needed_test=pool.new_node_gate.test
    )
    assert facts_of_gate([case], now=NOON)[case.pk].is_untestable == ""
    assert wanted_test(case) == "cuda"
    assert why_no_validation(case, "cuda") == ""
    assert facts_of([case])[case.pk].needs == "The new node needs CUDA on each device."
    Node.objects.update(layout="", slices_expected=0)
    assert wanted_test(case) == pool.new_node_gate.test
    assert "The new node needs dcgmi diag" in why_no_validation(case, "cuda")


def test_a_sick_node_with_mig_is_told_how_its_fault_is_tested():
    case = a_case(a_node(a_cluster(), "gpu-1", **MIG), state=CaseState.DRAINED)
    assert "Turn MIG off on the drained node" in why_no_validation(case, "cuda")
    Node.objects.update(layout="", slices_expected=0)
    assert "MIG" not in why_no_validation(case, "cuda")


def test_a_pool_whose_nodes_no_test_can_pass_gets_no_gate():
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE))
    a_node(pool.cluster, "gpu-1", pool=pool, **MPS)
    with pytest.raises(CaseRefused, match="no test has all 8 GPUs"):
        set_gate(pool, GateSettings(is_on=True, test="dcgm-3"), actor="root", reason="x", now=NOON)
    assert not NewNodeGate.objects.exists()


def test_a_pool_whose_nodes_have_no_gpus_yet_gets_a_gate():
    """Their driver is not installed: what they will offer is unknown."""
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE))
    a_node(pool.cluster, "gpu-1", pool=pool, gpu_expected=None)
    gate = set_gate(pool, GateSettings(is_on=True, test="dcgm-3"), actor="root", reason="x", now=NOON)
    assert gate.on_since == NOON


def test_a_state_that_lasts_too_long_is_a_finding():
    pool = a_gated_pool()
    node = a_node(pool.cluster, "gpu-1", pool=pool)
    a_case(node, is_new=True, state=CaseState.PROVISIONED, waits_for="Driver pod: no. It crashes.")
    assert list(WAITING.say(pool.cluster, now=NOON + timedelta(minutes=29))) == []
    ((_, problem),) = WAITING.say(pool.cluster, now=NOON + timedelta(minutes=31))
    assert "Driver pod: no. It crashes." in problem.summary


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (GateSettings(is_on=True, test="own"), "test"),
        (GateSettings(is_on=True, test="vectoradd"), "test"),  # of one GPU
        (GateSettings(is_on=True, test="nccl"), "test"),  # it has no image
        (GateSettings(is_on=True, test="dcgm-3", taints=["gpu"]), "taints"),
        (GateSettings(is_on=True, test="dcgm-3", labels=["=x"]), "labels"),
        (GateSettings(is_on=True, test="dcgm-3", labels=["x"] * 21), "labels"),
    ],
)
def test_settings_that_cannot_hold_are_refused(wanted: GateSettings, field: str):
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE))
    with pytest.raises(BadNewNodeGate) as refused:
        set_gate(pool, wanted, actor="root", reason="x", now=NOON)
    assert [problem["field"] for problem in refused.value.problems] == [field]
    assert not NewNodeGate.objects.exists()


def test_the_image_of_a_pool_is_enough_for_its_gate():
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE), test_images="nccl=registry.example/nccl:2")
    gate = set_gate(pool, GateSettings(is_on=True, test="nccl"), actor="root", reason="x", now=NOON)
    assert gate.test == "nccl"


def test_a_gate_needs_the_right_to_change_its_cluster():
    pool = a_pool(a_cluster(mode=ClusterMode.OBSERVE_ONLY))
    with pytest.raises(CaseRefused, match="may not change"):
        set_gate(pool, GateSettings(is_on=True, test="dcgm-3"), actor="root", reason="x", now=NOON)


def test_the_page_names_nodes_that_joined_and_are_not_held(monkeypatch: pytest.MonkeyPatch):
    pool = a_gated_pool()
    new = {"pool": pool, "created_at": JOINED}
    a_pod(a_node(pool.cluster, "gpu-serving", **new), "early", gpus=1)
    a_node(pool.cluster, "gpu-cordoned", is_unschedulable=True, **new)
    is_upgraded(a_node(pool.cluster, "gpu-upgraded", **new))
    a_node(pool.cluster, "gpu-refused", **new)
    gate = NewNodeGate.objects.get()
    gate.change(refused_at=NOON, refused_node="gpu-refused", refusal="An approval is missing.")
    assert {node.name: why for node, why in new_nodes.unheld_nodes(gate, most=9, now=NOON)} == {
        "gpu-serving": "team-a/early runs there: the node serves already.",
        "gpu-cordoned": "Somebody else cordoned the node.",
        "gpu-upgraded": "The node is being changed.",
        "gpu-refused": "An approval is missing.",
    }
    text = page(visiting(a_user("vera", role="viewer")), f"/maintenance/new-nodes/{pool.pk}").text
    assert "gpu-serving" in text
    assert "No node joined" not in text

    ((_, problem),) = UNHELD.say(pool.cluster, now=NOON + timedelta(seconds=10))
    assert "An approval is missing." in problem.summary
    assert list(UNHELD.say(pool.cluster, now=NOON + timedelta(minutes=3))) == []


def test_a_gate_that_somebody_changed_first_is_not_overwritten():
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE))
    wanted = GateSettings(is_on=True, test="dcgm-3", taints=["gpu=new:NoSchedule"], needs_person=True)
    first = settings_version(None)
    set_gate(pool, wanted, actor="rita", reason="x", seen=first, now=NOON)
    with pytest.raises(CaseRefused, match="rita changed the gate"):
        set_gate(pool, GateSettings(is_on=False, test="dcgm-2"), actor="root", reason="x", seen=first, now=JOINED)
    gate = NewNodeGate.objects.get()
    assert (gate.test, gate.on_since) == ("dcgm-3", NOON)
    set_gate(pool, GateSettings(False, "dcgm-2"), actor="root", reason="x", seen=settings_version(gate), now=NOON)
    before, after = (AuditEntry.objects.latest("number").evidence[side] for side in ("from", "to"))
    assert before == {
        "on": True, "test": "dcgm-3", "labels": [], "taints": ["gpu=new:NoSchedule"], "needs_person": True,
    }  # fmt: skip
    assert after == {"on": False, "test": "dcgm-2", "labels": [], "taints": [], "needs_person": False}


def test_a_gate_is_set_on_its_page_and_by_rest():
    pool = a_pool(a_cluster(mode=ClusterMode.OPERATE), "h200")
    visiting(a_user("root", role="admin")).post(
        f"/maintenance/new-nodes/{pool.pk}",
        {"is_on": "on", "test": "dcgm-3", "labels": "team\nrack=7", "taints": "", "reason": "New racks."},
    )
    gate = NewNodeGate.objects.get()
    assert (gate.test, gate.labels, gate.on_since is not None) == ("dcgm-3", ["team", "rack=7"], True)
    assert AuditEntry.objects.get().verb == "new-node-gate.set"
    assert "rack=7" in page(visiting(a_user("vera", role="viewer")), f"/maintenance/new-nodes/{pool.pk}").text
    assert "h200" in page(visiting(a_user("vic", role="viewer")), "/maintenance/new-nodes").text

    body: dict[str, Any] = {"is_on": False, "test": "dcgm-2", "reason": "Done."}
    address = f"/api/v1/new-node-gates/{pool.pk}/settings"
    assert calling(a_user("oskar", role="operator")).post(address, body, format="json").status_code == 403
    rita = calling(a_user("rita", role="admin"))
    assert rita.post(address, body | {"seen": "none"}, format="json").status_code == 409
    body["seen"] = rita.get(f"/api/v1/new-node-gates/{pool.pk}").json()["version"]
    answer = rita.post(address, body, format="json")
    assert (answer.status_code, answer.json()["on_since"], answer.json()["test"]) == (200, None, "dcgm-2")


def test_the_checklist_of_a_cordoned_node_holds(ground: Ground):
    """Nothing that the gate does keeps it from its end."""
    case = hold(ground, its_pool(ground))
    assert is_cordoned(ground)
    assert facts_of_gate([case], now=ground.clock())[case.pk].lacks == ""
