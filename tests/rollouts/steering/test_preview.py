from fleet.models import Node
from rollouts.models import DomainBudget, StageKind
from rollouts.steering.preview import preview
from rollouts.steering.stage_drafts import StageDraft
from tests.make import NOON
from tests.rollouts.rows import CANARY, GATES, a_draft


def warned(plan) -> dict[str, str]:
    return {check.code: check.sentence for check in preview(plan, now=NOON).warnings}


def test_a_budget_that_broken_nodes_use_up_is_named_before_the_start(cluster, owner):
    """Z6: the budget counts what is broken already."""
    plan = a_draft(cluster, owner)
    Node.objects.filter(name="node-2").update(is_unschedulable=True)

    assert "node-2 already is" in warned(plan)["budget"]


def test_a_budget_with_room_is_no_warning(cluster, owner):
    assert "budget" not in warned(a_draft(cluster, owner))


def test_waves_keep_to_the_budgets_of_failure_domains(cluster, owner):
    """Z15: the canary takes one; of the two that are left, one goes at a time though the stage allows both."""
    stages = (CANARY, StageDraft("Rest", StageKind.POOL, gate_options=GATES, max_unavailable=2))
    plan = a_draft(cluster, owner, stages=stages)
    Node.objects.update(zone="a")
    together = preview(plan, now=NOON).stages[1].by_wave
    DomainBudget.objects.create(cluster=cluster, kind="zone", max_unavailable=1, by="root", at=NOON)

    apart = preview(plan, now=NOON).stages[1].by_wave

    assert [len(wave) for wave in together] == [2]
    assert [len(wave) for wave in apart] == [1, 1]


def test_a_domain_that_has_no_place_left_is_named_before_the_start(cluster, owner):
    plan = a_draft(cluster, owner)
    DomainBudget.objects.create(cluster=cluster, kind="zone", max_unavailable=1, by="root", at=NOON)
    Node.objects.update(zone="a")
    Node.objects.filter(name="node-2").update(is_ready=False)

    assert warned(plan)["domain"] == "Zone a may have 1 node unavailable and has 1: node-2 (not Ready)."
