from datetime import time, timedelta

import pytest

from fleet.models import Bookmark, ClusterEvent, DriverObject, Node, Observer, Pod, Pool, PriorityClass
from health.sources.hours import provide_partition
from rollouts.engine.baseline import baselines
from rollouts.engine.live_state import Live
from rollouts.engine.observation import observe
from rollouts.engine.snapshot import Snapshot
from rollouts.gates.base import Answer
from rollouts.gates.compatibility import Compatibility
from rollouts.gates.window import Window
from rollouts.lifecycle import PlanState
from rollouts.models import Approval, Command, GateOverride, Hold, MaintenanceWindow, Plan, StageKind, Target
from rollouts.models.transitions import record_event
from tests.make import NOON, a_placement, a_pod, a_pool
from tests.rollouts.make import OLD, OLD_HASH
from tests.rollouts.rows import POLICY, a_started_plan, answered, in_state

LIVE = Live(object_version=OLD, hashes={}, unsettled=(), stopped_reason="")


@pytest.fixture
def plan(cluster, owner) -> Plan:
    return in_state(a_started_plan(cluster, owner), "promoting")


def seen(plan: Plan, *, now=NOON) -> Snapshot:
    return observe(Plan.objects.select_related("cluster").get(pk=plan.pk), LIVE, now=now)


def node(snapshot: Snapshot, name: str = "node-0"):
    return next(node for node in snapshot.nodes if node.name == name)


def target(snapshot: Snapshot):
    return snapshot.stages[0].targets[0]


def test_a_snapshot_costs_the_same_number_of_queries_however_large_the_plan(
    plan: Plan, cluster, django_assert_max_num_queries
):
    with django_assert_max_num_queries(33):
        seen(plan)


def test_what_is_about_to_be_written_is_as_the_api_server_said(plan: Plan):
    """Z25."""
    live = Live(object_version="1.2.3", hashes={"a": "b"}, unsettled=("ds",), stopped_reason="Stop.")

    snapshot = observe(plan, live, now=NOON)

    assert (snapshot.version.current, snapshot.templates.newest, snapshot.templates.unsettled) == (
        "1.2.3",
        {"a": "b"},
        ("ds",),
    )
    assert snapshot.orders.stopped_reason == "Stop."


@pytest.mark.parametrize(
    ("wanted", "placed", "again"),
    [(-9, -8, False), (-9, 5, True), (3, 5, False), (-9, None, False)],
    ids=["before the write", "put back", "wanted since", "gone still"],
)
def test_a_hold_that_was_gone_since_the_write_is_known_by_when_it_was_read_back(plan: Plan, wanted, placed, again):
    Plan.objects.update(write_intended_at=NOON)
    placed_at = None if placed is None else NOON + timedelta(seconds=placed)
    Hold.objects.update(wanted_since=NOON + timedelta(seconds=wanted), placed_at=placed_at)

    assert node(seen(plan)).was_held_again == again


def test_a_node_is_held_by_us_when_its_label_names_this_plan(plan: Plan):
    Node.objects.filter(name="node-0").update(is_held=True, held_by=plan.mark)
    Node.objects.filter(name="node-1").update(is_held=True, held_by="plan-999")

    snapshot = seen(plan)

    assert node(snapshot).is_held
    assert not node(snapshot, "node-1").is_held


def test_what_we_read_back_counts_before_the_rows_show_it(plan: Plan):
    Hold.objects.filter(plan=plan, node_name="node-0").update(placed_at=NOON)

    assert node(seen(plan)).label_was_placed


def test_a_node_whose_driver_label_vanished_names_no_driver(plan: Plan):
    """Z21."""
    Node.objects.filter(name="node-0").update(driver_unknown_since=NOON)

    snapshot = seen(plan)

    assert node(snapshot).driver_version == ""
    assert target(snapshot).driver_version == ""


def test_the_driver_pod_says_which_template_a_node_has(plan: Plan):
    assert node(seen(plan)).pod_hash == OLD_HASH

    Pod.objects.filter(name="driver-0").delete()

    assert node(seen(plan)).pod_hash == ""


def test_in_an_old_snapshot_no_target_is_seen(plan: Plan):
    """Z25."""
    snapshot = seen(plan, now=NOON + timedelta(minutes=5))

    assert "was last observed at" in snapshot.stale_reason
    assert not any(target.is_seen for stage in snapshot.forward for target in stage.targets)


def test_a_kind_that_was_never_shown_is_an_old_snapshot(plan: Plan):
    Bookmark.objects.filter(kind="pods").delete()

    assert "pods" in seen(plan).stale_reason


def test_a_node_that_left_is_not_seen(plan: Plan):
    Node.objects.filter(name="node-0").delete()

    assert not target(seen(plan)).is_seen


def test_a_pause_that_stands_is_seen(plan: Plan):
    Command.objects.create(plan=plan, verb="pause", actor="ada", at=NOON, reason="Lunch.")

    assert seen(plan).orders.paused_reason == "ada paused the plan: Lunch."


def test_wait_timeout_starts_anew_when_a_pause_ends(plan: Plan):
    later = NOON + timedelta(hours=2)
    Command.objects.create(plan=plan, verb="pause", actor="engine", at=NOON, reason="Look.", ended_at=later)

    assert seen(plan).stages[0].state_since == later


def test_a_gate_waits_since_it_said_so_and_one_that_passed_since_now(plan: Plan):
    stage = plan.stages.get(index=0)
    answered(stage, "driver_version", "wait", since=NOON - timedelta(minutes=3))
    answered(stage, "approval", "pass", since=NOON - timedelta(minutes=3))

    waiting_since = seen(plan).stages[0].waiting_since

    assert waiting_since == {"driver_version": NOON - timedelta(minutes=3), "approval": NOON}


@pytest.mark.parametrize(("cause", "waits"), [("closed", timedelta(0)), ("no-window", timedelta(minutes=3))])
def test_what_goes_before_each_wave_has_waited_for_nobody_while_the_window_was_closed(plan: Plan, cause, waits):
    """In the round in which it opens, its row is still of the one before."""
    plan.stages.filter(index=0).update(gate_options={"window": {}, "headroom": {}, "driver_version": {}})
    stage = plan.stages.get(index=0)
    given = {"answer": "wait", "since": NOON - timedelta(minutes=3)}
    answered(stage, "window", cause=cause, **given)
    answered(stage, "headroom", cause="unseen", **given)
    answered(stage, "driver_version", **given)

    waiting_since = {gate: NOON - since for gate, since in seen(plan).stages[0].waiting_since.items()}

    assert waiting_since == {"window": waits, "headroom": waits, "driver_version": timedelta(minutes=3)}


@pytest.mark.parametrize(("state", "waits"), [("promoting", timedelta(0)), ("soaking", timedelta(hours=3))])
def test_hours_before_the_first_node_of_a_wave_changes_are_no_wait_for_its_test(plan: Plan, state: str, waits):
    stage = plan.stages.get(index=0)
    answered(stage, "test_job", "wait", cause="to-come", since=NOON - timedelta(hours=3))
    plan.stages.filter(index=0).update(state=state)

    assert seen(plan).stages[0].waiting_since == {"test_job": NOON - waits}


def test_the_soak_s_clock_does_not_wait_for_what_is_only_advisory(plan: Plan):
    stage = plan.stages.get(index=0)
    options = {"driver_version": {}, "operands_ready": {"advisory": True}, "soak": {}}
    type(stage).objects.filter(pk=stage.pk).update(gate_options=options)
    answered(stage, "driver_version", "pass", since=NOON)
    answered(stage, "operands_ready", "fail")

    assert seen(plan).stages[0].evidence.others_passing_since == NOON


@pytest.mark.parametrize(("by", "is_own"), [("amy", False), ("owner", True), ("", True)])
def test_an_approval_by_the_author_or_by_nobody_does_not_count(plan: Plan, by: str, is_own: bool):
    Approval.objects.create(stage=plan.stages.get(index=0), bundle={}, bundle_hash="x", by=by, at=NOON)

    (approval,) = seen(plan).stages[0].evidence.approvals

    assert approval.is_by_author is is_own


def test_a_void_approval_is_not_shown(plan: Plan):
    Approval.objects.create(stage=plan.stages.get(index=0), bundle={}, bundle_hash="x", by="amy", at=NOON, void_at=NOON)

    assert seen(plan).stages[0].evidence.approvals == ()


def test_what_the_soak_does_not_wait_for_is_named(plan: Plan):
    before = seen(plan).stages[0].evidence.others_uncounted
    stage = plan.stages.get(index=0)
    GateOverride.objects.create(
        stage=stage, gate="driver_version", by="root", at=NOON, until=NOON + timedelta(hours=1), reason="Known."
    )

    assert before == ()
    assert seen(plan).stages[0].evidence.others_uncounted == ("Driver version",)


def test_the_others_pass_since_the_last_of_them_did(plan: Plan):
    stage = plan.stages.get(index=0)
    assert seen(plan).stages[0].evidence.others_passing_since is None

    answered(stage, since=NOON - timedelta(minutes=3))
    assert seen(plan).stages[0].evidence.others_passing_since == NOON - timedelta(minutes=3)

    answered(stage, answer="wait")
    assert seen(plan).stages[0].evidence.others_passing_since is None


def test_a_node_is_compared_with_what_it_was_when_it_was_released(plan: Plan):
    """Z24, Z26."""
    row = Node.objects.get(name="node-0")
    a_pod(row, "model-0")
    uid = row.uid
    baseline = baselines(plan, [uid], now=NOON)[uid]
    Target.objects.filter(node_name="node-0").update(baseline=baseline, state="changed")
    Pod.objects.filter(name="model-0").update(is_ready=False)

    shown = seen(plan).stages[0].evidence

    assert shown.targets[0].baseline.allocatable == {"nvidia.com/gpu": 8}
    assert shown.targets[0].baseline.operands == ("Driver",)
    assert shown.workloads_ready_before == {"Deployment team-a/model": 1}
    assert shown.workloads_ready_now == {"Deployment team-a/model": 0}


@pytest.mark.parametrize(
    ("ended", "after", "number"), [("Completed", 60, 1), ("Completed", -60, 0), ("Error", 60, 0), ("", 60, 0)]
)
def test_a_pod_that_completed_since_the_release_is_not_missed(plan: Plan, ended: str, after: int, number: int):
    """The pod of a Job that ran to its end comes back no more, and the plan waited for it until a person overrode."""
    row = Node.objects.get(name="node-0")
    pod = a_pod(row, "train-0", owner_kind="Job", owner_name="train")
    written = baselines(plan, [row.uid], now=NOON)[row.uid]
    Target.objects.filter(node_name="node-0").update(baseline=written, state="changed")
    pod.delete()
    until = NOON + timedelta(seconds=after)
    a_placement(row, "train-0", owner_name="train", since=NOON - timedelta(days=1), until=until, ended=ended)

    assert seen(plan).stages[0].evidence.workloads_ready_now == {"Job team-a/train": number}


def test_short_pods_on_unchanged_nodes_are_none_of_those_that_are_missed(plan: Plan):
    """A workload of short pods has many that completed since, and none of them on the node with the new driver."""
    released, unchanged = Node.objects.filter(name__in=["node-0", "node-1"]).order_by("name")
    job = {"owner_kind": "Job", "owner_name": "train"}
    pods = [a_pod(node, f"train-{number}", **job) for number, node in enumerate([released, unchanged, unchanged])]
    written = baselines(plan, [released.uid], now=NOON)[released.uid]
    Target.objects.filter(node_name="node-0").update(baseline=written, state="changed")
    Pod.objects.filter(pk__in=[pod.pk for pod in pods]).delete()
    over = {"owner_name": "train", "ended": "Completed", "until": NOON + timedelta(hours=2)}
    later, earlier = NOON + timedelta(hours=1), NOON - timedelta(hours=1)

    def completed() -> int:
        return seen(plan).stages[0].evidence.workloads_ready_now["Job team-a/train"]

    for number in range(9):
        a_placement(unchanged, f"short-{number}", since=later, **over)
    assert completed() == 0, "they began after the others were counted, with the old driver"
    a_placement(unchanged, "train-1", since=earlier, **over)
    assert completed() == 1, "it was one of those that were counted"
    a_placement(released, "train-0b", since=later, **over)
    assert completed() == 2, "it ran on the released node"


def test_work_between_the_release_and_the_new_driver_counts_for_nothing(plan: Plan):
    row = Node.objects.get(name="node-0")
    provide_partition(NOON - timedelta(hours=2))
    plan.stages.forward().update(gate_options={"exposure": {}})
    written = baselines(plan, [row.uid], now=NOON - timedelta(hours=2))[row.uid]
    Target.objects.filter(node_name="node-0").update(
        baseline=written, state="changed", state_since=NOON - timedelta(minutes=30)
    )
    Pod.objects.filter(name="driver-0").update(started_at=NOON - timedelta(minutes=40))
    a_pod(row, "model-0", gpus=1, ready_since=NOON - timedelta(minutes=50))
    assert target(seen(plan)).work.gpu_time == timedelta()

    Pod.objects.filter(name="model-0").update(ready_since=NOON - timedelta(minutes=35))
    assert target(seen(plan)).work.gpu_time == timedelta(minutes=30)


def refused_pod(plan: Plan, *, at) -> None:
    named = {"about_kind": "Deployment", "about_namespace": "team-a", "about_name": "model"}
    said = {"reason": "FailedCreate", "is_warning": True, "message": "exceeded quota: gpus", "last_at": at}
    ClusterEvent.objects.create(cluster=plan.cluster, uid=f"uid-of-{at}", changed_at=at, **named, **said)


@pytest.mark.parametrize(("after", "is_said"), [(-60, False), (60, True)])
def test_what_refuses_the_pods_of_an_owner_since_its_node_was_released_is_said(plan: Plan, after: int, is_said):
    """Z31."""
    row = Node.objects.get(name="node-0")
    a_pod(row, "model-0")
    written = baselines(plan, [row.uid], now=NOON)[row.uid]
    Target.objects.filter(node_name="node-0").update(baseline=written, state="changed")
    refused_pod(plan, at=NOON + timedelta(seconds=after))
    assert seen(plan).stages[0].evidence.workloads_refused == {}  # it has as many as before

    Pod.objects.filter(name="model-0").delete()

    told = {"Deployment team-a/model": "exceeded quota: gpus"} if is_said else {}
    assert seen(plan).stages[0].evidence.workloads_refused == told


@pytest.mark.parametrize(("pod_after", "is_said"), [(-60, True), (60, True), (61, False), (900, False)])
def test_what_refused_a_pod_is_not_said_once_a_newer_one_was_taken(plan: Plan, pod_after: int, is_said):
    """Z31. The quota was raised: the Event stays for an hour, and the pod that was taken since is not Ready yet."""
    row = Node.objects.get(name="node-0")
    a_pod(row, "model-0")
    written = baselines(plan, [row.uid], now=NOON)[row.uid]
    Target.objects.filter(node_name="node-0").update(baseline=written, state="changed")
    Pod.objects.filter(name="model-0").delete()
    refused_pod(plan, at=NOON + timedelta(seconds=60))
    a_pod(row, "model-1", is_ready=False, created_at=NOON + timedelta(seconds=pod_after))
    a_pod(row, "model", owner_name="other", created_at=NOON + timedelta(hours=1))
    a_pod(row, "model-2", namespace="team-b", created_at=NOON + timedelta(hours=1))

    told = {"Deployment team-a/model": "exceeded quota: gpus"} if is_said else {}
    assert seen(plan).stages[0].evidence.workloads_refused == told


@pytest.mark.parametrize(("released_after", "is_said"), [(30, True), (90, False)])
def test_what_refused_a_pod_before_another_of_its_nodes_was_released_is_not_said(
    plan: Plan, released_after: int, is_said
):
    """Z31: nothing is evaluated by what is older than our last act on it."""
    rows = list(Node.objects.filter(name__in=["node-0", "node-1"]).order_by("name"))
    for number, row in enumerate(rows):
        a_pod(row, f"model-{number}")
        at = NOON + timedelta(seconds=released_after * number)
        written = baselines(plan, [row.uid], now=at)[row.uid]
        Target.objects.filter(node_name=row.name).update(
            baseline=written, state="changed", stage=plan.stages.get(index=0)
        )
    Pod.objects.filter(name="model-1").delete()
    refused_pod(plan, at=NOON + timedelta(seconds=60))

    assert bool(seen(plan).stages[0].evidence.workloads_refused) is is_said


def test_a_tenants_pod_is_evaluated_from_when_the_node_took_it(plan: Plan):
    a_pod(Node.objects.get(name="node-0"), "model-0", started_at=NOON, is_ready=False)
    Target.objects.filter(node_name="node-0").update(state="changed")

    (pod,) = target(seen(plan)).workloads

    assert (pod.started_at, pod.is_ready) == (NOON, False)


def test_a_tenants_pod_that_does_not_run_says_what_that_means(plan: Plan):
    crashes = {"is_ready": False, "waiting_reason": "CrashLoopBackOff: x", "stuck_container": "main", "restarts": 9}
    a_pod(Node.objects.get(name="node-0"), "model-0", last_words="torch: CUDA out of memory. Tried 2 GiB", **crashes)
    Target.objects.filter(node_name="node-0").update(state="changed")

    (pod,) = target(seen(plan)).workloads

    assert pod.why.startswith("Not enough free GPU memory.")
    assert pod.why.endswith("“torch: CUDA out of memory. Tried 2 GiB”")


def test_the_validator_of_a_node_is_its_newest_pod_that_stays_by_our_clock(plan: Plan):
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON, clock_skew_s=600.0)
    row = Node.objects.get(name="node-0")
    given = {"namespace": "gpu-operator", "gpus": 0, "operand": "operator-validator"}
    a_pod(row, "validator-old", **given, started_at=NOON - timedelta(hours=1))
    a_pod(row, "validator-now", **given, started_at=NOON, is_ready=False, stuck_container="cuda-validation")
    a_pod(row, "validator-leaving", **given, started_at=NOON + timedelta(minutes=1), deleted_at=NOON)
    Pod.objects.filter(name="driver-0").update(started_at=NOON - timedelta(minutes=1))
    Target.objects.filter(node_name="node-0").update(state="changed")

    shown = target(seen(plan))

    assert shown.validator.uid == Pod.objects.get(name="validator-now").uid
    assert (shown.validator.step, shown.validator.is_ready) == ("cuda-validation", False)
    assert shown.validator.started_at == NOON - timedelta(minutes=10)
    assert shown.driver_started_at == NOON - timedelta(minutes=11)


def test_a_baseline_remembers_the_validator_s_pod_the_mig_manager_s_word_and_the_machine(plan: Plan):
    row = Node.objects.get(name="node-0")
    pod = a_pod(row, "validator-0", namespace="gpu-operator", gpus=0, operand="operator-validator")
    Node.objects.filter(pk=row.pk).update(mig_config_state="success", mig_config="all-balanced", is_unschedulable=True)
    Node.objects.filter(pk=row.pk).update(physical_mig=4)
    Target.objects.filter(node_name="node-0").update(
        baseline=baselines(plan, [row.uid], now=NOON)[row.uid], state="changed"
    )
    Node.objects.filter(pk=row.pk).update(held_by="plan-999", is_held=True)

    shown = target(seen(plan))

    assert shown.baseline.validator_uid == pod.uid
    assert (shown.baseline.mig_config_state, shown.baseline.is_unschedulable) == ("success", True)
    assert shown.baseline.mig_gpus == 4
    assert shown.baseline.traits == shown.traits
    assert shown.traits["MIG configuration"] == "all-balanced"
    assert shown.is_held_by_others


def test_a_baseline_of_an_older_version_names_less(plan: Plan):
    uid = Node.objects.get(name="node-0").uid
    written = baselines(plan, [uid], now=NOON)[uid]
    older = {key: value for key, value in written.items() if key not in {"validator_uid", "mig_config_state", "traits"}}
    Target.objects.filter(node_name="node-0").update(baseline=older, state="changed")

    assert target(seen(plan)).baseline.traits == {}


def test_the_matrix_is_asked_about_the_nodes_of_a_stage_that_opens_and_of_no_other(
    plan: Plan, django_assert_max_num_queries
):
    gates = {"compatibility": {"allow_unknown": True}, "driver_version": {}}
    plan.stages.forward().update(gate_options=gates, state="waiting")
    plan.stages.filter(index=1).update(state="opening")

    with django_assert_max_num_queries(38):
        canary, rest, _ = seen(plan).stages

    assert (canary.evidence.combinations, canary.evidence.compared) == ((), 0)
    assert rest.evidence.compared == len(rest.targets) == 2
    assert "580" in rest.evidence.combinations[0].sentence


def test_a_failed_node_stands_in_for_none_that_the_matrix_does_not_compare(plan: Plan):
    """A stage that has to be approved again opens with nodes that have failed: its gate asks about the others."""
    plan.stages.filter(index=1).update(gate_options={"compatibility": {"allow_unknown": True}}, state="opening")
    failed, left = Target.objects.filter(stage__plan=plan, stage__index=1)
    Target.objects.filter(pk=failed.pk).update(state="failed")
    Node.objects.filter(uid=left.node_uid).update(gpu_vendor="amd")

    evidence = seen(plan).stages[1].evidence

    assert (evidence.compared, evidence.combinations) == (0, ())
    assert Compatibility(allow_unknown=True).evaluate(evidence, now=NOON).answer is Answer.WAIT


def test_what_was_overridden_at_the_start_is_known_to_the_gate(plan: Plan):
    assert seen(plan).stages[0].evidence.despite == ""
    for code, despite in {"unsupported": "ada started it despite this: We must.", "busy": ""}.items():
        sealed = {"despite": {"by": "ada", "reason": "We must.", "checks": [{"code": code}]}}
        Plan.objects.filter(pk=plan.pk).update(sealed=plan.sealed | sealed)

        assert seen(plan).stages[0].evidence.despite == despite


def with_headroom(plan: Plan, state: str = "opening") -> None:
    gates = {"headroom": {}, "driver_version": {}}
    plan.stages.filter(index=0).update(gate_options=gates, state=state)
    Node.objects.update(gpu_product="H100", requested={"nvidia.com/gpu": 3})


def test_the_next_wave_needs_what_its_tenants_request_and_is_offered_what_others_have_left(
    plan: Plan, django_assert_max_num_queries
):
    """Z13: of the same product, Ready and schedulable, and none that is about to go itself."""
    with_headroom(plan)
    row = Node.objects.get(name="node-0")
    a_pod(row, "model-0", gpus=3)
    a_pod(row, "agent-0", gpus=1, owner_kind="DaemonSet")
    Node.objects.filter(name="node-2").update(is_unschedulable=True)

    with django_assert_max_num_queries(36):
        wave = seen(plan).stages[0].evidence.next_wave

    assert wave.nodes == ("node-0",)
    assert [(pod.name, pod.product, pod.resources) for pod in wave.pods] == [
        ("team-a/model-0", "H100", {"nvidia.com/gpu": 3})
    ]
    assert wave.free == {"H100": ({"nvidia.com/gpu": 5},)}


def test_room_is_asked_for_no_more_nodes_than_the_operator_lets_be_unavailable(plan: Plan):
    plan.stages.filter(index=0).update(state="passed")
    plan.stages.filter(index=1).update(gate_options={"headroom": {}}, state="promoting", max_unavailable=2)
    policies = DriverObject.objects.filter(kind="ClusterPolicy")

    policies.update(upgrade_policy=POLICY | {"maxUnavailable": 2})
    assert len(seen(plan).stages[1].evidence.next_wave.nodes) == 2
    policies.update(upgrade_policy=POLICY | {"maxUnavailable": 1})
    assert len(seen(plan).stages[1].evidence.next_wave.nodes) == 1


def test_pods_that_anybody_may_displace_need_no_room_and_make_some(plan: Plan):
    with_headroom(plan)
    given = {"cluster": plan.cluster, "uid": "uid-of-a-class", "changed_at": NOON}
    PriorityClass.objects.create(name="queue", value=-100, **given)
    a_pod(Node.objects.get(name="node-0"), "sweep-0", priority_class="queue")
    a_pod(Node.objects.get(name="node-0"), "model-0")
    a_pod(Node.objects.get(name="node-1"), "sweep-1", gpus=2, priority_class="queue")

    wave = seen(plan).stages[0].evidence.next_wave

    assert [pod.name for pod in wave.pods] == ["team-a/model-0"]
    assert sorted(node["nvidia.com/gpu"] for node in wave.free["H100"]) == [5, 7]
    assert wave.expendable == {"nvidia.com/gpu": 2}


def test_in_an_old_snapshot_nobody_knows_who_goes_next(plan: Plan):
    with_headroom(plan)

    assert seen(plan, now=NOON + timedelta(minutes=5)).stages[0].evidence.next_wave is None


def a_window(plan: Plan, *, opens: int, pool: Pool | None = None, hours: int = 2) -> MaintenanceWindow:
    return MaintenanceWindow.objects.create(
        cluster=plan.cluster, pool=pool, rule="FREQ=DAILY", first_day=NOON.date() - timedelta(days=7),
        opens_at=time(opens), zone="UTC", duration_s=hours * 3600, by="root", at=NOON,
    )  # fmt: skip


def test_what_keeps_every_node_back_is_known_to_the_gates(plan: Plan):
    plan.stages.filter(index=0).update(state="passed")
    plan.stages.filter(index=1).update(gate_options={"headroom": {}, "driver_version": {}}, state="opening")
    pool = a_pool(plan.cluster, "one")
    Node.objects.get(name="node-1").pools.add(pool)
    a_window(plan, opens=16, pool=pool)
    some = seen(plan).stages[1].evidence
    a_window(plan, opens=16)

    every = seen(plan).stages[1].evidence

    assert (some.bound_reason, some.next_wave is None) == ("", False)
    assert every.bound_reason.endswith("closed until 16:00 UTC.")
    assert every.next_wave is None


def test_a_gate_has_waited_for_nobody_while_nothing_might_go(plan: Plan):
    with_headroom(plan)
    answered(plan.stages.get(index=0), "headroom", "wait", cause="bound", since=NOON - timedelta(days=3))

    assert seen(plan).stages[0].waiting_since == {"headroom": NOON}


@pytest.mark.parametrize(("state", "is_bound"), [("promoting", True), ("rolling-back", False), ("aborting", False)])
def test_what_was_released_is_bound_by_a_window_that_is_gone_only_on_the_way_forward(plan: Plan, state, is_bound):
    """Z3, Z32."""
    plan.stages.filter(index=0).update(gate_options={"window": {}, "driver_version": {}}, state="promoting")
    Target.objects.filter(node_name="node-0").update(state="released")
    Plan.objects.filter(pk=plan.pk).update(state=state)

    restrained = seen(Plan.objects.get(pk=plan.pk)).orders.restrained

    bare = "No maintenance window covers node-0. Create a maintenance window for the pool or the cluster."
    assert restrained == ({Node.objects.get(name="node-0").uid: bare} if is_bound else {})


def with_window(plan: Plan, **given) -> None:
    plan.stages.filter(index=0).update(state="passed")
    plan.stages.filter(index=1).update(gate_options={"window": {}, "driver_version": {}}, state="promoting", **given)


def test_windows_are_read_of_the_nodes_still_to_go_those_of_their_pools_among_them(
    plan: Plan, cluster, django_assert_max_num_queries
):
    with_window(plan)
    rest = [target.node_name for target in Target.objects.filter(stage__plan=plan, stage__index=1)]
    pool = a_pool(cluster, "late", selector="tier=late")
    Node.objects.get(name=rest[0]).pools.add(pool)
    a_window(plan, opens=11)
    a_window(plan, opens=12, pool=pool, hours=3)
    a_window(plan, opens=20)
    its = f"cluster {cluster.name}"

    with django_assert_max_num_queries(37):
        windows = seen(plan).stages[1].evidence.windows

    assert {one.nodes: one.sentence for one in windows} == {
        (rest[0],): f"The maintenance windows of {its} and pool {cluster.name}/late are open until 13:00 UTC.",
        (rest[1],): f"The maintenance window of {its} is open until 13:00 UTC.",
    }
    assert all(one.openings[0] == (NOON, NOON + timedelta(hours=1)) for one in windows if rest[0] in one.nodes)
    assert Window().evaluate(seen(plan).stages[1].evidence, now=NOON).answer is Answer.PASS


def test_a_node_that_no_window_binds_is_read_as_that(plan: Plan):
    with_window(plan)

    (windows,) = seen(plan).stages[1].evidence.windows

    assert (windows.sentence, windows.openings, len(windows.nodes)) == ("", (), 2)
    assert Window().evaluate(seen(plan).stages[1].evidence, now=NOON).cause == "no-window"


def test_of_nodes_that_are_not_seen_nobody_says_which_windows_bind_them(plan: Plan):
    with_window(plan)
    a_window(plan, opens=11)

    assert seen(plan, now=NOON + timedelta(minutes=5)).stages[1].evidence.windows is None
    Node.objects.filter(cluster=plan.cluster).exclude(name="node-0").delete()
    assert seen(plan).stages[1].evidence.windows is None


def test_who_crashed_elsewhere_before_is_remembered_and_not_blamed(plan: Plan):
    untouched = Node.objects.get(name="node-2")
    a_pod(untouched, is_ready=False, restarts=9, owner_name="always-broken")
    uid = Node.objects.get(name="node-0").uid

    assert baselines(plan, [uid], now=NOON)[uid]["sick_owners"] == ["Deployment team-a/always-broken"]


def test_who_crashes_on_a_node_we_touched_is_not_excused(plan: Plan):
    Target.objects.filter(stage__plan=plan, node_name="node-0").update(state="changed")
    a_pod(Node.objects.get(name="node-0"), is_ready=False, restarts=9)
    uid = Node.objects.get(name="node-2").uid

    assert baselines(plan, [uid], now=NOON)[uid]["sick_owners"] == []


@pytest.mark.parametrize(("skew_s", "is_late_node"), [(None, True), (1.5, True), (300.0, False), (-300.0, True)])
def test_who_joined_is_told_by_the_cluster_s_own_clock(plan: Plan, skew_s, is_late_node):
    """A node made a minute before the write, by a clock that is minutes ahead, has not joined since (Z4)."""
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON, clock_skew_s=skew_s)
    Plan.objects.filter(pk=plan.pk).update(write_intended_at=NOON)
    Node.objects.filter(name="node-0").update(created_at=NOON + timedelta(seconds=240))

    assert node(seen(plan)).is_late_node is is_late_node


def test_a_pod_is_not_called_late_reason_its_clock_is_behind(plan: Plan):
    """Z26."""
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON, clock_skew_s=-600.0)
    a_pod(Node.objects.get(name="node-0"), "model-0", started_at=NOON - timedelta(minutes=10), is_ready=False)
    Target.objects.filter(node_name="node-0").update(state="changed")

    (pod,) = target(seen(plan)).workloads

    assert pod.started_at == NOON


def a_failure_in_the_rollback(plan: Plan, *, at) -> None:
    stage = plan.stages.get(kind=StageKind.ROLLBACK)
    row = {"node_uid": "uid-of-node-0", "node_name": "node-0", "position": 0, "state_since": at}
    target, _ = Target.objects.get_or_create(stage=stage, state="failed", defaults=row)
    given = {"what": "target", "was": "changing", "to": "failed", "now": at, "actor": "engine", "reason": ""}
    record_event(plan=plan, stage=stage, target=target, **given)


def test_how_often_a_node_failed_in_the_rollback_is_counted_from_when_a_person_last_said_go_on(plan: Plan):
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.ROLLING_BACK)
    plan.refresh_from_db()
    for minutes in (1, 2, 3):
        a_failure_in_the_rollback(plan, at=NOON + timedelta(minutes=minutes))
    later = NOON + timedelta(minutes=10)

    assert seen(plan, now=later).rollback_stage.failures == {"uid-of-node-0": 3}
    resumed = {"at": NOON, "ended_at": NOON + timedelta(minutes=2, seconds=30), "actor": "ada", "reason": "Mended."}
    Command.objects.create(plan=plan, verb="pause", **resumed)
    assert seen(plan, now=later).rollback_stage.failures == {"uid-of-node-0": 1}
