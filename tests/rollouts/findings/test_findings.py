import pytest

from fleet.models import Node, Observer
from health.evaluation import evaluation_round
from health.inbox.rulebook import every_rule
from health.models import Finding
from rollouts.commands import plan_control
from rollouts.findings.plan_findings import CORDON_LEFT, EXCLUSION_LEFT, HALTED, LEFT_BEHIND
from rollouts.models import Cordon, Exclusion, Hold, Plan, Target
from tests import make
from tests.make import NOON
from tests.reports import steps, told

pytestmark = pytest.mark.django_db


def test_no_source_has_the_key_of_a_rule():
    keys = [entry.key for entry in every_rule()]

    assert len(set(keys)) == len(keys)


def test_a_halted_plan_is_a_finding_of_its_cluster_until_it_goes_on():
    plan = make.a_plan()
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON)
    plan.move("halted", now=NOON, actor="ada", reason="gpu-1 failed.")

    evaluation_round.evaluate_cluster(plan.cluster, now=NOON)
    finding = Finding.objects.get(rule=HALTED.key)

    assert (finding.subject, finding.page) == (f"plan {plan.pk}", f"/plans/{plan.pk}")
    assert (finding.opened_at, finding.severity) == (NOON, "critical")  # as red as on its own page
    assert finding.sentence == f"Plan #{plan.pk} “New driver” is halted. gpu-1 failed."
    assert told(finding).splitlines()[2:4] == ["Reason: gpu-1 failed.", "Nodes: No node was released."]
    assert "If it is not needed, abort the plan." in finding.steps

    plan.move("rolling-back", now=NOON, actor="ada", reason="Back.")
    evaluation_round.evaluate_cluster(plan.cluster, now=NOON)
    assert not Finding.objects.open().filter(rule=HALTED.key).exists()


def test_whom_a_plan_was_halted_by_is_said_before_why():
    """“Redis is away.” alone reads as something that was found."""
    plan = make.a_plan()
    plan_control.halt(plan, actor=make.a_user("ada", role="operator"), reason="Redis is away.", now=NOON)

    ((_, wrong),) = HALTED.say(plan.cluster, now=NOON)

    assert "Reason: ada halted the plan: Redis is away." in told(wrong)


def test_a_halted_plan_says_how_far_it_came():
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(write_intended_at=NOON)
    plan.move("halted", now=NOON, actor="ada", reason="gpu-1 failed.")
    Target.objects.filter(stage__plan=plan, node_name="gpu-0").update(state="changed")
    Target.objects.filter(stage__plan=plan, node_name="gpu-1").update(state="excluded")

    plan.refresh_from_db()
    ((subject, wrong),) = HALTED.say(plan.cluster, now=NOON)

    assert subject == f"plan {plan.pk}"
    assert "Nodes: 1 of 2 nodes was released. The cluster runs two versions." in told(wrong)
    assert "If it does harm, roll the plan back." in wrong.steps


def left_behind(plan: Plan, *, is_wanted: bool) -> list[str]:
    Node.objects.filter(cluster=plan.cluster, name="gpu-1").update(is_held=True, held_by=plan.mark)
    node = Node.objects.get(cluster=plan.cluster, name="gpu-1")
    Hold.objects.filter(plan=plan, node_uid=node.uid).delete()
    Hold.objects.create(plan=plan, node_uid=node.uid, node_name=node.name, wanted_since=NOON, is_wanted=is_wanted)
    return [f"{told(wrong)}\n{steps(wrong)}" for _, wrong in LEFT_BEHIND.say(plan.cluster, now=NOON)]


def test_a_hold_of_a_plan_that_is_over_is_found_with_the_command_that_takes_it_off():
    """Z33: a write that was on its way may arrive after the end."""
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="rolled-back")

    (said,) = left_behind(plan, is_wanted=False)

    assert said.startswith("Hold of an ended plan on gpu-1")
    assert f"Plan: #{plan.pk} “New driver”\nState of the plan: rolled back" in said
    assert "kubectl label node gpu-1 nvidia.com/gpu-driver-upgrade.skip-" in said


@pytest.mark.parametrize(("state", "is_wanted"), [("aborted", True), ("promoting", False), ("holding", True)])
def test_a_hold_that_is_meant_to_be_there_is_no_finding(state, is_wanted):
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=state)

    assert left_behind(plan, is_wanted=is_wanted) == []


def exclusions_left_by(plan: Plan) -> list[str]:
    Exclusion.objects.create(plan=plan, node_uid="x", node_name="gpu-9", controller="nvsentinel", wanted_since=NOON)
    patch = '{"metadata":{"labels":{"k8saas.nvidia.com/ManagedByNVSentinel":null}}}'
    annotations = {"quarterdeck.io/opted-out-by": plan.mark, "quarterdeck.io/put-back": patch}
    Node.objects.filter(cluster=plan.cluster, name="gpu-1").update(annotations=annotations)
    return [f"{told(wrong)}\n{steps(wrong)}" for _, wrong in EXCLUSION_LEFT.say(plan.cluster, now=NOON)]


def test_an_exclusion_of_a_plan_that_is_over_is_found_with_the_command_that_puts_it_back():
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="aborted")

    (said,) = exclusions_left_by(plan)

    assert said.startswith("Exclusion of an ended plan on gpu-1")
    assert "State of the plan: aborted\nExcluded from: NVSentinel" in said
    assert said.endswith(
        "kubectl patch node gpu-1 --type=merge -p "
        "\"$(kubectl get node gpu-1 -o jsonpath='{.metadata.annotations.quarterdeck\\.io/put-back}')\""
    )


def test_an_exclusion_of_a_plan_under_way_is_no_finding():
    assert exclusions_left_by(make.a_plan()) == []


def cordoned_by(plan: Plan) -> list[str]:
    Cordon.objects.create(plan=plan, node_uid="x", node_name="gpu-1", wanted_since=NOON)
    annotations = {"quarterdeck.io/cordoned-by": plan.mark}
    Node.objects.filter(cluster=plan.cluster, name="gpu-1").update(annotations=annotations, is_unschedulable=True)
    return [f"{told(wrong)}\n{steps(wrong)}" for _, wrong in CORDON_LEFT.say(plan.cluster, now=NOON)]


def test_a_cordon_of_a_plan_that_is_over_is_found_with_the_commands_that_let_pods_in():
    """Z8: what failed its test stays cordoned, and Z33: with its owner named."""
    plan = make.a_plan()
    Plan.objects.filter(pk=plan.pk).update(state="aborted")

    (said,) = cordoned_by(plan)

    assert said.startswith("Cordon of an ended plan on gpu-1")
    assert "kubectl uncordon gpu-1" in said
    assert "kubectl annotate node gpu-1 quarterdeck.io/cordoned-by- nvidia.com/" in said


def test_a_cordon_of_a_plan_under_way_is_no_finding():
    assert cordoned_by(make.a_plan()) == []
