from datetime import timedelta

import pytest

from fleet.models import Bookmark, DriverObject, Node
from operations.models import DomainBudget
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import StageKind
from tests.make import NOON, a_pod
from tests.rollouts.rows import CANARY, GATES, POLICY, REST, a_draft, a_driver_cluster


def warned(plan) -> dict[str, str]:
    return {check.code: check.sentence for check in preview(plan, now=NOON).warnings}


def test_a_budget_that_broken_nodes_use_up_is_named_before_the_start(cluster, owner):
    """Z6: the budget counts what is broken already."""
    plan = a_draft(cluster, owner)
    Node.objects.filter(name="node-2").update(is_unschedulable=True)

    assert warned(plan)["budget"].startswith("The budget of Rest is used up.")


def test_a_budget_with_room_is_no_warning(cluster, owner):
    assert "budget" not in warned(a_draft(cluster, owner))


def test_a_budget_of_the_operator_that_is_used_up_is_named_before_the_start(cluster, owner):
    """Z6: whoever cordoned a node, it counts in the operator's maxUnavailable, which lets no other begin then."""
    plan = a_draft(cluster, owner, stages=(CANARY, StageDraft("Rest", StageKind.POOL, gate_options=GATES)))
    plan.stages.update(max_unavailable=2)
    DriverObject.objects.filter(kind="ClusterPolicy").update(upgrade_policy=POLICY | {"maxUnavailable": 1})
    Node.objects.filter(name="node-2").update(is_unschedulable=True)

    assert warned(plan)["budget"].startswith("maxUnavailable of the driver object is used up.")


def test_waves_keep_to_the_budgets_of_failure_domains(cluster, owner):
    """Z15: the canary takes one; of the two that are left, one goes at a time though the stage allows both."""
    stages = (CANARY, StageDraft("Rest", StageKind.POOL, gate_options=GATES, max_unavailable=2))
    plan = a_draft(cluster, owner, stages=stages)
    Node.objects.update(zone="a")
    together = preview(plan, now=NOON).stages[1].by_wave
    DomainBudget.objects.create(cluster=cluster, kind="zone", max_unavailable=1, by="root", at=NOON)

    told = preview(plan, now=NOON)

    assert [len(wave) for wave in together] == [2]
    assert [len(wave) for wave in told.stages[1].by_wave] == [1, 1]
    assert told.stages[1].waves_reason.startswith("The stage allows 2, and its failure domains 1 at once.")
    assert "3 waves" in told.forecast.duration.sentence


def test_a_domain_that_has_no_place_left_is_named_before_the_start(cluster, owner):
    plan = a_draft(cluster, owner)
    DomainBudget.objects.create(cluster=cluster, kind="zone", max_unavailable=1, by="root", at=NOON)
    Node.objects.update(zone="a")
    Node.objects.filter(name="node-2").update(is_ready=False)

    assert warned(plan)["domain"].endswith("Zone a may have 1 node unavailable and has 1: node-2 (not Ready).")


def a_pod_of(node_name: str, owner: str, *, hours: int, gpus: int = 8) -> None:
    kind, name = owner.split("/")
    node = Node.objects.get(name=node_name)
    since = NOON - timedelta(hours=hours)
    a_pod(node, gpus=gpus, owner_kind=kind, owner_name=name, namespace="team-a", started_at=since)


def test_nodes_go_in_the_order_of_least_harm_and_each_says_why(owner):
    """Z14: idle first, then fewest GPU-hours of whole jobs, and the nodes of one job one after another."""
    cluster = a_driver_cluster(nodes=6)
    a_pod_of("node-0", "PyTorchJob/old", hours=100)
    a_pod_of("node-1", "ReplicaSet/chat-5d", hours=2)
    a_pod_of("node-2", "MPIJob/young", hours=3)
    a_pod_of("node-4", "MPIJob/young", hours=3)
    plan = a_draft(
        cluster, owner, stages=(CANARY, StageDraft("All", StageKind.POOL, gate_options=GATES, max_unavailable=2))
    )

    told = preview(plan, now=NOON)

    stage = told.stages[1]
    assert told.stages[0].targets == ["node-1"], "its tenants show whether the driver works"
    assert stage.targets == ["node-3", "node-5", "node-2", "node-4", "node-0"]
    assert [harm.sentence for _, harm in stage.harms] == [
        "Idle.",
        "Idle.",
        "Ends MPIJob team-a/young (16 GPUs on 2 nodes): 48 GPU-hours at most.",
        "Ends MPIJob team-a/young (16 GPUs on 2 nodes): 48 GPU-hours at most.",
        "Ends PyTorchJob team-a/old (8 GPUs on 1 node): 800 GPU-hours at most.",
    ]
    assert stage.costs == "Costs 848 GPU-hours at most: 2 jobs end, 2 of 5 nodes are idle."
    assert (told.forecast.jobs, told.forecast.gpu_hours, told.forecast.restarts) == (2, 848.0, 1)


def test_work_that_nobody_counts_in_gpu_hours_is_not_none(cluster, owner):
    plan = a_draft(cluster, owner)
    a_pod(Node.objects.get(name="node-1"), gpus=0, claims=["train-gpu"], is_tenant=True, started_at=NOON)
    alone = preview(plan, now=NOON)
    a_pod_of("node-2", "PyTorchJob/old", hours=100)
    both = preview(plan, now=NOON)

    assert (alone.forecast.gpu_hours, alone.forecast.uncounted_pods) == (None, 1)
    assert "Costs an unknown number of GPU-hours, of 1 pod with" in " ".join(stage.costs for stage in alone.stages)
    assert (both.forecast.gpu_hours, both.forecast.uncounted_pods) == (800.0, 1)


@pytest.mark.parametrize("never", [{"listed_at": None, "last_seen_at": None}, {"state": "forbidden"}])
def test_where_pods_were_never_read_nobody_knows_what_it_costs(cluster, owner, never):
    plan = a_draft(cluster, owner)
    Bookmark.objects.filter(cluster=cluster, kind="pods").update(**never)

    told = preview(plan, now=NOON)

    shown = told.forecast
    assert (shown.pods, shown.jobs, shown.gpu_hours, shown.unmanaged_pods, shown.pods_with_local_files) == (None,) * 5
    assert shown.namespaces is None
    assert {stage.costs for stage in told.stages} == {"The cost is unknown, because pods there were never read."}
    assert {harm.sentence for _, harm in told.stages[0].harms} == {"Unknown: its pods were never read."}


def test_of_canaries_that_stand_for_as_much_the_one_that_harms_least_is_taken(cluster, owner):
    a_pod_of("node-0", "PyTorchJob/old", hours=100)
    a_pod_of("node-1", "PyTorchJob/young", hours=1)

    assert preview(a_draft(cluster, owner), now=NOON).stages[0].targets == ["node-2"]


def test_gpus_that_nobody_has_counted_are_not_none(cluster, owner):
    plan = a_draft(cluster, owner)
    Node.objects.filter(name="node-1").update(physical_gpus=None, physical_whole=0)
    some = preview(plan, now=NOON).forecast
    Node.objects.update(physical_gpus=None, physical_whole=0)
    unknown = preview(plan, now=NOON).forecast

    assert (some.gpus, some.uncounted_nodes) == (16, 1)
    assert (unknown.gpus, unknown.uncounted_nodes) == (None, 3)


def test_idle_nodes_cost_nobody_anything(cluster, owner):
    assert preview(a_draft(cluster, owner), now=NOON).stages[1].costs == "No tenant loses work: all 2 nodes are idle."


def test_a_plan_is_sealed_in_the_order_that_its_preview_shows(cluster, owner):
    a_pod_of("node-1", "PyTorchJob/old", hours=100)
    plan = a_draft(cluster, owner, stages=(CANARY, REST))
    shown = preview(plan, now=NOON).stages[1].targets

    start(plan, actor=owner, reason="It is time.", expected_revision=1, now=NOON)

    targets = [target.node_name for target in plan.stages.get(index=1).targets.order_by("position")]
    assert targets == shown == ["node-2", "node-1"]


def test_pods_that_have_ended_or_are_on_their_way_out_are_no_work_to_lose(cluster, owner):
    """As the order of release counts them: a Job that is through holds no GPU, and leaves its pod behind."""
    plan = a_draft(cluster, owner)
    node = Node.objects.get(name="node-1")
    a_pod(node, "through", phase="Succeeded", is_ready=False, owner_kind="Job", namespace="batch")
    a_pod(node, "crashed", phase="Failed", is_ready=False, owner_kind="", has_empty_dir=True)
    a_pod(node, "going", deleted_at=NOON)

    told = preview(plan, now=NOON)

    assert all(stage.costs.startswith("No tenant loses work") for stage in told.stages)
    assert (told.forecast.pods, told.forecast.namespaces) == (0, [])
    assert (told.forecast.unmanaged_pods, told.forecast.pods_with_local_files) == (0, 0)
