"""A plan that ends without the nodes that failed or are held: told by a person, with a reason, and said for good."""

from datetime import timedelta

import pytest

from fleet.models import Node
from people.models import AuditEntry
from rollouts.commands import plan_control
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.models import Hold, Plan, Stage, Target, Wave
from rollouts.queries.completion import Completion, completion_of
from tests.make import NOON
from tests.rollouts.rows import a_started_plan, in_state

LATER = NOON + timedelta(minutes=5)


@pytest.fixture
def plan(cluster, owner) -> Plan:
    """The canary passed; of the last stage one node failed, and one waits for its wave."""
    plan = in_state(a_started_plan(cluster, owner), "halted")
    Stage.objects.filter(plan=plan, index=0).update(state="passed")
    Target.objects.filter(stage__plan=plan, stage__index=0).update(state="changed")
    last = plan.stages.get(index=1)
    Stage.objects.filter(pk=last.pk).update(state="halted")
    failed = last.targets.order_by("position").first()
    wave = Wave.objects.create(stage=last, number=1, decided_at=NOON, reason="")
    Target.objects.filter(pk=failed.pk).update(state="failed", wave=wave)
    Hold.objects.filter(plan=plan, node_uid=failed.node_uid).update(is_wanted=False)
    plan.stages.get(index=1).approvals.create(by="amy", at=NOON, bundle={}, bundle_hash="x")
    return Plan.objects.get(pk=plan.pk)


def complete(plan: Plan, owner, **given) -> Plan:
    plan_control.complete(plan, actor=owner, reason="Its board is dead.", now=LATER, **given)
    return Plan.objects.get(pk=plan.pk)


def states(plan: Plan) -> list[str]:
    return list(plan.stages.forward().values_list("state", flat=True))


def test_it_says_what_it_would_leave_out(plan):
    found = completion_of(plan)

    assert found.says == "Left out: node-1 failed and is not held; node-2 stays held with the present driver."
    assert found.is_empty


def test_one_that_failed_and_carries_a_label_is_not_said_to_be_free(plan):
    Node.objects.filter(name="node-1").update(is_held=True)

    assert completion_of(plan).says.startswith("Left out: node-1 failed, and stays held; node-2 stays held")


def test_a_stage_that_has_no_node_left_is_ended_without_it(plan, owner):
    done = complete(plan, owner)

    assert (done.state, states(done)) == ("promoting", ["passed", "abandoned"])
    assert set(Target.objects.filter(stage__plan=plan, state="excluded").values_list("node_name", flat=True)) == {
        "node-1", "node-2",
    }  # fmt: skip
    assert Hold.objects.get(plan=plan, node_name="node-2").is_wanted
    assert not Hold.objects.get(plan=plan, node_name="node-1").is_wanted


def test_a_page_that_showed_others_is_refused(plan, owner):
    """It ends the plan for good: who read of one node and left it open for an hour must not leave out twelve."""
    seen = completion_of(plan).seen
    Target.objects.filter(stage__plan=plan, node_name="node-2").update(state="failed")

    with pytest.raises(OutOfDate, match=r"since you read the plan. Left out: node-1, node-2"):
        complete(plan, owner, seen=seen)

    assert not Target.objects.filter(stage__plan=plan, state="excluded").exists()
    assert complete(plan, owner, seen=completion_of(plan).seen).state == "promoting"


def test_a_sentence_that_names_some_stands_for_all():
    """Five are named; who the sixth is decides, too."""
    one, other = (Completion("", failed=("a", "b", "c", "d", "e", sixth)) for sixth in "fg")

    assert one.says == other.says
    assert one.seen != other.seen


def test_the_others_are_still_evaluated(plan, owner):
    Target.objects.filter(stage__plan=plan, node_name="node-2").update(state="changed")

    done = complete(plan, owner)

    assert (done.state, states(done)) == ("promoting", ["passed", "promoting"])
    assert done.stages.get(index=1).targets.get(node_name="node-2").state == "changed"


def test_who_why_and_what_is_kept(plan, owner):
    complete(plan, owner, key="k1")
    complete(plan, owner, key="k1")

    command = plan.commands.get(verb="complete")
    entry = AuditEntry.objects.filter(subject=plan.mark).last()
    assert (command.actor, command.reason) == (owner.username, "Its board is dead.")
    assert (entry.verb, entry.evidence["failed"], entry.evidence["held"]) == ("complete", ["node-1"], ["node-2"])


def still_to_come(plan: Plan) -> str:
    Stage.objects.filter(plan=plan, index=0).update(state="halted")
    return "Rest is still to come, with 2 nodes"


def nothing_released(plan: Plan) -> str:
    Wave.objects.all().delete()
    return "Rest has released no node yet"


def on_its_way(plan: Plan) -> str:
    Target.objects.filter(stage__plan=plan, node_name="node-2").update(state="changing")
    return "1 node of Rest is being changed"


def nothing_left(plan: Plan) -> str:
    Target.objects.filter(stage__plan=plan, stage__index=1).update(state="changed")
    return "No node failed or is held"


@pytest.mark.parametrize("released", [True, False])
def test_a_last_stage_whose_nodes_were_all_taken_out_is_ended_without_it(plan, owner, released):
    """It has nothing to evaluate: it would wait for good."""
    Target.objects.filter(stage__plan=plan, stage__index=1).update(state="excluded")
    if not released:
        Wave.objects.all().delete()

    assert states(complete(plan, owner)) == ["passed", "abandoned"]


def nothing_changed(plan: Plan) -> str:
    Target.objects.filter(stage__plan=plan, stage__index=0).update(state="excluded")
    return "No node has changed"


def passed(plan: Plan) -> str:
    Stage.objects.filter(plan=plan, index=1).update(state="passed")
    return "Every stage has passed"


@pytest.mark.parametrize("change", [still_to_come, nothing_released, on_its_way, nothing_left, nothing_changed, passed])
def test_where_it_makes_no_sense_it_is_refused(plan, owner, change):
    """Loses to whoever moved the stage or a target since it was read."""
    reason = change(plan)

    with pytest.raises(Refusal, match=reason):
        complete(plan, owner)

    assert not plan.commands.filter(verb="complete").exists()


def test_it_ends_a_pause(plan, owner):
    in_state(plan, "promoting")
    plan_control.pause(plan, actor=owner, reason="Wait.", now=NOON)

    complete(plan, owner)

    assert not plan.commands.in_force().exists()
