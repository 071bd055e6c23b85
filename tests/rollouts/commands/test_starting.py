from dataclasses import replace
from datetime import timedelta

import pytest

from edges.digests import digest
from edges.prepared_inserts import compile_inserts
from fleet.models import Bookmark, DriverObject, Node, Operand, OperandRevision
from people.models import AuditEntry
from rollouts.commands import plan_start
from rollouts.commands.plan_drafts import edit
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked, OutOfDate, Refusal
from rollouts.lifecycle import PlanState
from rollouts.models import Hold, Plan, Target
from tests import make
from tests.make import NOON
from tests.rollouts.make import NEW, OLD, OLD_HASH
from tests.rollouts.rows import CANARY, REST, SELECTOR, a_draft, a_started_plan, in_state, wanted


def started(plan: Plan, actor, **given) -> Plan:
    start(plan, actor=actor, **{"reason": "It is time.", "expected_revision": 1, "now": NOON} | given)
    plan.refresh_from_db()
    return plan


def test_a_start_seals_the_plan_and_wants_every_node_held(cluster, owner):
    """Z1."""
    plan = started(a_draft(cluster, owner), owner)

    assert plan.state == PlanState.HOLDING
    assert wanted(plan) == {"node-0": True, "node-1": True, "node-2": True}
    assert plan.content_hash == digest(plan.sealed)
    assert list(plan.sealed["revisions"].values()) == [OLD_HASH]
    assert [stage["targets"] for stage in plan.sealed["stages"]] == [["node-0"], ["node-1", "node-2"], []]
    assert plan.next_look_at == NOON


def test_stages_wait_from_the_start_on_and_not_from_the_draft(cluster, owner):
    plan = a_draft(cluster, owner, now=NOON - timedelta(seconds=30))

    started(plan, owner)

    assert set(plan.stages.values_list("state_since", flat=True)) == {NOON}


def test_nothing_starts_while_the_nodes_of_a_pool_are_being_sorted(cluster, owner):
    plan = a_draft(cluster, owner)
    make.a_pool(cluster, "half", is_sorted=False)

    with pytest.raises(Blocked, match="Nodes are entering or leaving pool half"):
        started(plan, owner)
    with pytest.raises(Blocked, match="Nodes are entering or leaving pool half"):
        make.begun(plan, owner)  # as it would be if that had begun after the preview

    assert Plan.objects.get().state == PlanState.DRAFT


def test_the_same_content_has_the_same_name_and_other_content_another(cluster, owner):
    plan = a_started_plan(cluster, owner)
    sealed = dict(plan.sealed)

    assert digest(dict(reversed(sealed.items()))) == plan.content_hash
    assert digest(sealed | {"to": OLD}) != plan.content_hash


def test_the_same_key_again_is_the_same_start(cluster, owner):
    plan = started(a_draft(cluster, owner), owner, key="once")

    started(plan, owner, key="once")

    assert plan.commands.count() == 1
    assert Target.objects.filter(stage__plan=plan).count() == 3
    assert [entry.verb for entry in AuditEntry.objects.filter(subject=plan.mark)] == ["draft", "start"]


def test_a_plan_that_has_started_is_not_started_again(cluster, owner):
    plan = started(a_draft(cluster, owner), owner)

    with pytest.raises(Refusal, match="The plan was already started"):
        started(plan, owner)


def test_a_draft_that_was_edited_since_is_not_started(cluster, owner):
    plan = a_draft(cluster, owner)
    edit(plan, title="", to_version=NEW, stages=[CANARY], expected_revision=1, actor=owner, now=NOON)

    with pytest.raises(OutOfDate):
        started(plan, owner, expected_revision=1)

    assert not Hold.objects.exists()


def test_a_label_of_somebody_else_is_known_as_theirs(cluster, owner):
    Node.objects.filter(name="node-1").update(is_held=True, held_by="")

    plan = started(a_draft(cluster, owner), owner)

    assert Hold.objects.get(plan=plan, is_foreign=True).node_name == "node-1"
    assert not Target.objects.filter(node_name="node-1").exists()


def test_a_node_that_others_cordoned_is_no_target_and_still_held(cluster, owner):
    """Z6."""
    Node.objects.filter(name="node-1").update(is_unschedulable=True)

    plan = started(a_draft(cluster, owner), owner)

    assert not Target.objects.filter(node_name="node-1").exists()
    assert wanted(plan)["node-1"]
    assert preview(plan, now=NOON).excluded == [("node-1", "cordoned by somebody else")]


def driver(**given):
    return lambda _: DriverObject.objects.filter(kind="NVIDIADriver").update(**given)


def policy(**given):
    def change(_):
        row = DriverObject.objects.get(kind="ClusterPolicy")
        row.upgrade_policy = row.upgrade_policy | given
        row.save()

    return change


BLOCKERS = {
    "stale": lambda cluster: cluster.bookmarks.update(last_seen_at=NOON - timedelta(minutes=5)),
    "mode": lambda cluster: setattr(cluster, "mode", "observe-only") or cluster.save(),
    "drifted": driver(version="570.1.1"),
    "no-rollback": driver(version=""),
    "same-version": driver(version=NEW),
    "no-policy": lambda _: DriverObject.objects.filter(kind="ClusterPolicy").delete(),
    "crd-off": lambda _: DriverObject.objects.filter(kind="ClusterPolicy").update(uses_driver_crd=False),
    "sandbox": lambda _: DriverObject.objects.filter(kind="ClusterPolicy").update(sandbox_workloads=True),
    "precompiled": driver(use_precompiled=True),
    "not-ready": driver(state="notReady", message="conflicting selector"),
    "pre-installed": lambda _: Node.objects.filter(name="node-2").update(
        labels={"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.deploy.driver": "pre-installed"}
    ),
    "unrecorded": lambda _: OperandRevision.objects.all().delete(),
    "auto-upgrade": policy(autoUpgrade=False),
    "unavailable": policy(maxUnavailable="0%"),
    "parallel": policy(maxParallelUpgrades=0),
    "owned": driver(owned_by=["Argo CD"]),
    "no-nodes": lambda cluster: cluster.nodes.all().delete(),
    "unsettled": lambda _: Operand.objects.update(generation=2, observed_generation=1),
    "under-way": lambda _: Node.objects.filter(name="node-1").update(upgrade_state="drain-required"),
    "empty-stage": lambda cluster: cluster.nodes.exclude(name="node-0").delete(),
}


@pytest.mark.parametrize("code", BLOCKERS)
def test_what_stands_against_it_is_named(cluster, owner, code: str):
    """Z2, Z9: the lever does not exist, or is somebody else's."""
    plan = a_draft(cluster, owner)
    BLOCKERS[code](cluster)
    plan = Plan.objects.select_related("cluster").get(pk=plan.pk)

    with pytest.raises(Blocked) as refusal:
        started(plan, owner)

    assert code in [blocker["code"] for blocker in refusal.value.blockers]
    assert all(blocker["title"] for blocker in refusal.value.blockers)
    assert not Hold.objects.exists()
    plan.refresh_from_db()
    assert plan.state == PlanState.DRAFT


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"state": "forbidden"}, "may not be read"),
        ({"last_seen_at": NOON - timedelta(hours=1)}, "last observed at"),
    ],
)
def test_a_policy_that_nobody_sees_any_more_stands_against_it(cluster, owner, given, words):
    """An NVIDIADriver is upgraded as the ClusterPolicy says: its row alone may be of yesterday."""
    plan = a_draft(cluster, owner)
    Bookmark.objects.filter(cluster=cluster, kind="clusterpolicies.nvidia.com").update(**given)

    stale = next(check for check in preview(plan, now=NOON).blockers if check.code == "stale")

    assert stale.summary.startswith("ClusterPolicies")
    assert words in stale.sentence


def test_one_plan_at_a_time_on_one_object(cluster, owner):
    a_started_plan(cluster, owner)
    second = a_draft(cluster, owner)

    with pytest.raises(Blocked) as refusal:
        started(second, owner)

    assert [blocker["code"] for blocker in refusal.value.blockers] == ["busy"]


def another_object(cluster) -> DriverObject:
    """Of a second NVIDIADriver, whose DaemonSet selects the same nodes."""
    other = make.a_driver_object(cluster, "other")
    make.an_operand(cluster, name="driver-of-the-other", owner_uid=other.uid, node_selector=SELECTOR)
    return other


def for_the_other(cluster, owner) -> Plan:
    plan, other = a_draft(cluster, owner), another_object(cluster)
    Plan.objects.filter(pk=plan.pk).update(object_uid=other.uid, object_name=other.name)
    return Plan.objects.select_related("cluster").get(pk=plan.pk)


def test_one_change_at_a_time_on_a_node_whatever_is_changed(cluster, owner):
    first = a_started_plan(cluster, owner)
    second = for_the_other(cluster, owner)

    told = {check.code: check.sentence for check in preview(second, now=NOON).blockers}

    assert told["busy-nodes"] == f"Another plan is changing 3 nodes. {first}."


def test_two_plans_that_start_in_the_same_second_never_have_a_node_both(cluster, owner, monkeypatch):
    """The database says no to whoever comes second, though neither preview saw the other."""
    a_started_plan(cluster, owner)
    second = for_the_other(cluster, owner)
    monkeypatch.setattr(plan_start, "preview", lambda plan, *, now: replace(preview(plan, now=now), blockers=[]))

    with pytest.raises(Blocked) as refusal:
        started(second, owner)

    assert "on the same object or nodes" in refusal.value.blockers[0]["title"]
    second.refresh_from_db()
    assert second.state == PlanState.DRAFT
    assert not Hold.objects.filter(plan=second).exists()


@pytest.mark.parametrize("end", [PlanState.ABORTED, PlanState.ROLLED_BACK, PlanState.PROMOTED])
def test_the_end_of_a_plan_frees_its_nodes_for_another(cluster, owner, end: PlanState):
    first = a_started_plan(cluster, owner)
    second = for_the_other(cluster, owner)
    before = {PlanState.PROMOTED: "promoting", PlanState.ROLLED_BACK: "rolling-back", PlanState.ABORTED: "aborting"}
    in_state(first, before[end]).move(end, now=NOON, actor="engine", reason="Over.")

    assert not Hold.objects.in_force().exists()
    assert "busy-nodes" not in [check.code for check in preview(second, now=NOON).blockers]


def test_a_plan_under_way_does_not_stand_in_its_own_way(cluster, owner):
    plan = a_started_plan(cluster, owner)

    assert "busy" not in [check.code for check in preview(plan, now=NOON).blockers]


def test_nothing_stands_against_a_cluster_in_good_order(cluster, owner):
    found = preview(a_draft(cluster, owner), now=NOON)

    assert found.blockers == []
    assert [stage.targets for stage in found.stages] == [["node-0"], ["node-1", "node-2"]]
    assert found.forecast.nodes == 3
    assert found.forecast.gpus == 24
    assert found.forecast.waits_for_operator == timedelta(minutes=2) * sum(stage.waves for stage in found.stages)
    assert "1 node can only show that at most 95 % would." in found.canary_shows


def test_nodes_that_no_stage_takes_are_named(cluster, owner):
    found = preview(a_draft(cluster, owner, stages=(CANARY,)), now=NOON)

    assert found.uncovered == ["node-1", "node-2"]
    assert "uncovered" in [check.code for check in found.warnings]


def test_a_canary_stands_for_most_and_names_the_pools_it_does_not_meet(cluster, owner):
    make.a_pool(cluster, "training").nodes.set(Node.objects.filter(name__in=["node-1", "node-2"]))
    found = preview(a_draft(cluster, owner, stages=(CANARY, REST)), now=NOON)

    assert found.stages[0].targets == ["node-1"]
    assert found.cohorts_uncovered == ["Every canary node is in a pool; 1 later node is in none."]


def test_a_kernel_that_the_canary_does_not_meet_is_named(cluster, owner):
    Node.objects.filter(name="node-2").update(kernel="6.99")
    plan = a_draft(cluster, owner, stages=(CANARY, REST))

    uncovered = " ".join(preview(plan, now=NOON).cohorts_uncovered)

    assert "kernel" in uncovered


def test_a_start_compiles_its_inserts_before_its_transaction(cluster, owner, monkeypatch):
    """Django compiles the rows of 20,000 nodes for seconds; a halt of another plan would wait for them (Z40)."""
    compiled = []

    def outside(rows):
        compiled.append((type(rows[0]), Plan.objects.get().state))
        return compile_inserts(rows)

    monkeypatch.setattr(plan_start, "compile_inserts", outside)

    started(a_draft(cluster, owner), owner)

    assert compiled == [(Target, PlanState.DRAFT), (Hold, PlanState.DRAFT)]
