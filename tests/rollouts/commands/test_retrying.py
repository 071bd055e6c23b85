from datetime import timedelta

import pytest

from fleet.models import Node, OperandRevision, Pod
from people.models import AuditEntry
from rollouts.commands.refusals import Refusal
from rollouts.commands.retries import retry
from rollouts.lifecycle import TargetState
from rollouts.models import Hold, Plan, Stage, Target
from tests.make import NOON
from tests.rollouts.make import NEW_HASH
from tests.rollouts.rows import a_started_plan, in_state

LATER = NOON + timedelta(minutes=5)


@pytest.fixture
def target(cluster, owner) -> Target:
    """A canary whose eviction failed: the operator gave up on it with the old driver pod still there."""
    plan = in_state(a_started_plan(cluster, owner), "halted")
    Stage.objects.filter(plan=plan, index=0).update(state="halted")
    target = Target.objects.select_related("stage__plan__cluster").get(stage__plan=plan, stage__index=0)
    Target.objects.filter(pk=target.pk).update(state="failed", baseline={"at": NOON.isoformat()})
    Hold.objects.filter(plan=plan, node_uid=target.node_uid).update(is_wanted=False)
    Node.objects.filter(uid=target.node_uid).update(upgrade_state="upgrade-failed")
    daemonset = cluster.operands.get(operand="driver").uid
    OperandRevision.objects.create(
        cluster=cluster, uid="uid-of-the-new", owner_uid=daemonset, revision=2, revision_hash=NEW_HASH, changed_at=NOON
    )
    return Target.objects.select_related("stage__plan__cluster").get(pk=target.pk)


def tried(target: Target, owner, reason: str = "Its PDB is mended.") -> Target:
    retry(target, actor=owner, reason=reason, now=LATER)
    return Target.objects.get(pk=target.pk)


def test_it_is_held_again_and_who_said_so_is_kept(target, owner):
    again = tried(target, owner)

    assert (again.state, again.retried_at, again.baseline) == ("held", LATER, {"at": NOON.isoformat()})
    assert Hold.objects.get(node_uid=target.node_uid).is_wanted
    assert target.stage.plan.commands.get(verb="retry").reason == "Its PDB is mended."
    entry = AuditEntry.objects.filter(subject=target.stage.plan.mark).last()
    assert (entry.verb, entry.evidence["node"]) == ("retry", target.node_name)
    waiting_for = Plan.objects.get(pk=target.stage.plan_id).waiting_for
    assert waiting_for == f"{owner.get_username()} requested another try of {target.node_name}."


def stands_at(target: Target, state: str) -> str:
    Target.objects.filter(pk=target.pk).update(state=state)
    return f"{target.node_name} is {state}. Only a failed node"


def is_gone(target: Target) -> str:
    Node.objects.filter(uid=target.node_uid).delete()
    return "is no longer in"


def went_on(target: Target) -> str:
    Node.objects.filter(uid=target.node_uid).update(upgrade_state="uncordon-required")
    return "The operator no longer reports"


def has_its_new_pod(target: Target) -> str:
    Pod.objects.filter(node__uid=target.node_uid, operand="driver").update(revision_hash=NEW_HASH)
    return "Another try would find the same pod. Read the pod's log and delete the pod"


def stage_passed(target: Target) -> str:
    Stage.objects.filter(pk=target.stage_id).update(state="passed")
    return "is passed in a plan that is halted: no node is released there"


def is_going_back(target: Target) -> str:
    Plan.objects.filter(pk=target.stage.plan_id).update(state="rolling-back")
    return "three times by itself. Each resume allows three more tries"


def is_over(target: Target) -> str:
    Plan.objects.filter(pk=target.stage.plan_id).update(state="aborted")
    return "its nodes cannot be tried again"


@pytest.mark.parametrize(
    "change",
    [
        *(lambda target, state=state: stands_at(target, state) for state in sorted({*TargetState} - {"failed"})),
        is_gone, went_on, has_its_new_pod, stage_passed, is_going_back, is_over,
    ],
)  # fmt: skip
def test_where_it_makes_no_sense_it_is_refused_with_what_helps(target, owner, change):
    """Loses to whoever moved the target, its stage or its plan since it was read."""
    reason = change(target)
    before = Target.objects.get(pk=target.pk).state

    with pytest.raises(Refusal, match=reason):
        tried(target, owner)

    assert Target.objects.get(pk=target.pk).state == before
    assert not target.stage.plan.commands.filter(verb="retry").exists()


def test_a_second_person_is_told_that_it_is_held_already(target, owner):
    tried(target, owner)

    with pytest.raises(Refusal, match="Only a failed node"):
        tried(target, owner)
