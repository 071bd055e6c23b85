from datetime import timedelta

import pytest

from people.models import AuditEntry
from people.models.audit_entry import broken_links
from rollouts.approvals.bundles import bundle_for
from rollouts.commands.plan_approvals import approve, reject
from rollouts.commands.refusals import AlreadyDecided, NotYours, Refusal, StaleBundle
from rollouts.engine.approvals import void_approvals
from rollouts.lifecycle import TargetState
from rollouts.models import Approval, Plan, Stage, Target
from tests.make import NOON, a_user
from tests.rollouts.rows import a_started_plan, an_item, answered, in_state, opened

LATER = NOON + timedelta(seconds=30)


@pytest.fixture
def stage(cluster, owner) -> Stage:
    """The second stage, which rests on the answers of the first."""
    plan = in_state(a_started_plan(cluster, owner), "promoting")
    stage = opened(plan, 1)
    answered(plan.stages.get(index=0))
    return stage


def approved(stage: Stage, actor, **given) -> Approval:
    row = {"bundle_hash": bundle_for(stage).hash, "reason": "", "now": NOON}
    return approve(stage, actor=actor, **row | given)


def test_an_approval_keeps_what_was_seen(stage: Stage, approver):
    approval = approved(stage, approver)

    assert approval.bundle_hash == bundle_for(stage).hash
    assert approval.bundle["content"]["targets"] == ["node-1", "node-2"]
    assert approval.bundle["content"]["answers"] == {"0:driver_version": "pass"}
    entry = AuditEntry.objects.filter(subject=stage.plan.mark).last()
    assert (entry.verb, entry.actor) == ("approve", "approver")
    said = f"{stage.name}: approver approved it; every gate is evaluated again."
    assert Plan.objects.get(pk=stage.plan_id).waiting_for == said
    assert list(broken_links(AuditEntry.objects.filter(subject=stage.plan.mark))) == []


@pytest.mark.parametrize("field", ["author", "last_editor"])
def test_nobody_approves_what_is_their_own(stage: Stage, field: str):
    eve = a_user("eve", role="admin")
    Plan.objects.filter(pk=stage.plan_id).update(**{field: "eve"})

    with pytest.raises(NotYours):
        approved(Stage.objects.get(pk=stage.pk), eve)

    assert not Approval.objects.exists()


@pytest.mark.parametrize("field", ["author", "last_editor"])
def test_a_plan_by_nobody_is_approved_by_nobody(stage: Stage, approver, field: str):
    """An unknown author fails closed."""
    Plan.objects.filter(pk=stage.plan_id).update(**{field: ""})

    with pytest.raises(NotYours):
        approved(Stage.objects.get(pk=stage.pk), approver)


def test_the_author_cannot_reject_it_either(stage: Stage, owner):
    with pytest.raises(NotYours):
        reject(stage, actor=owner, bundle_hash=bundle_for(stage).hash, reason="Mine.", now=NOON)


def test_nobody_who_started_it_lets_it_go(stage: Stage, approver):
    Plan.objects.update(started_by=approver.get_username())
    stage.refresh_from_db()

    with pytest.raises(NotYours, match="started this plan"):
        approved(stage, approver)


def test_what_changed_since_it_was_shown_is_not_approved(stage: Stage, approver):
    shown = bundle_for(stage).hash
    answered(stage.plan.stages.get(index=0), answer="wait")

    with pytest.raises(StaleBundle):
        approved(stage, approver, bundle_hash=shown)

    assert not Approval.objects.exists()


def test_a_stage_that_moved_on_is_not_approved(stage: Stage, approver):
    shown = bundle_for(stage).hash
    Stage.objects.filter(pk=stage.pk).update(state="promoting")

    with pytest.raises(StaleBundle):
        approved(stage, approver, bundle_hash=shown)


def test_only_an_open_stage_is_decided_on(stage: Stage, approver):
    canary = stage.plan.stages.get(index=0)

    with pytest.raises(Refusal):
        approved(canary, approver)


def test_one_person_decides_once(stage: Stage, approver):
    approved(stage, approver)

    with pytest.raises(AlreadyDecided):
        approved(stage, approver)

    assert Approval.objects.count() == 1


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_rejection_needs_a_reason(stage: Stage, approver, reason: str):
    with pytest.raises(Refusal, match="reason"):
        reject(stage, actor=approver, bundle_hash=bundle_for(stage).hash, reason=reason, now=NOON)


def test_a_rejection_is_kept(stage: Stage, approver):
    reject(stage, actor=approver, bundle_hash=bundle_for(stage).hash, reason="Month end.", now=NOON)

    assert Approval.objects.get().is_rejection


def test_saying_no_needs_no_second_look(stage: Stage, approver):
    shown = bundle_for(stage).hash
    answered(stage.plan.stages.get(index=0), answer="fail")

    rejection = reject(stage, actor=approver, bundle_hash=shown, reason="It fails.", now=NOON)

    assert rejection.bundle_hash == bundle_for(stage).hash != shown
    assert not voided(stage)


def voided(stage: Stage) -> bool:
    plan = Plan.objects.get(pk=stage.plan_id)
    void_approvals(plan, plan.stages.all(), now=LATER)
    return not Approval.objects.standing().exists()


@pytest.mark.parametrize("answer", ["wait", "fail"])
def test_an_answer_that_leaves_pass_voids_it(stage: Stage, approver, answer: str):
    approved(stage, approver)

    answered(stage.plan.stages.get(index=0), answer=answer)

    assert voided(stage)
    assert Approval.objects.get().void_reason


@pytest.mark.parametrize("decide", [approve, reject])
def test_a_stage_that_asks_nobody_is_not_decided_on(stage: Stage, approver, decide):
    """No gate would read it: the plan stood for good, with a rejection that stopped nothing."""
    Stage.objects.filter(pk=stage.pk).update(gate_options={"driver_version": {}})
    stage.refresh_from_db()

    with pytest.raises(Refusal, match="does not wait for an approval"):
        decide(stage, actor=approver, bundle_hash=bundle_for(stage).hash, reason="No.", now=NOON)

    assert not Approval.objects.exists()


def test_a_rejection_stays_whatever_changes_before_a_round_reads_it(stage: Stage, approver):
    reject(stage, actor=approver, bundle_hash="", reason="I saw a burnt board.", now=NOON)

    answered(stage.plan.stages.get(index=0), answer="wait")

    assert not voided(stage)


def test_a_window_that_was_open_when_it_was_shown_and_is_not_now_voids_it(stage: Stage, approver):
    first = stage.plan.stages.get(index=0)
    answered(first, "window")
    approved(stage, approver)

    answered(first, "window", answer="wait", title="The maintenance window of cluster north is closed")

    assert voided(stage)


def test_other_targets_void_it(stage: Stage, approver):
    approved(stage, approver)

    Target.objects.filter(stage=stage, node_name="node-2").update(state=TargetState.EXCLUDED)

    assert voided(stage)


def test_new_numbers_with_the_same_answers_keep_it(stage: Stage, approver):
    approved(stage, approver)

    answered(stage.plan.stages.get(index=0), evidence=[an_item("changed", 99)], title="More of the same")

    assert not voided(stage)


def test_a_voided_approval_can_be_given_again(stage: Stage, approver):
    approved(stage, approver)
    answered(stage.plan.stages.get(index=0), answer="wait")
    assert voided(stage)
    answered(stage.plan.stages.get(index=0), answer="pass")

    approved(stage, approver)

    assert Approval.objects.standing().count() == 1


def test_an_approval_has_the_plan_looked_at_now(stage: Stage, approver):
    Plan.objects.filter(pk=stage.plan_id).update(next_look_at=NOON + timedelta(hours=1))

    approved(stage, approver)

    assert Plan.objects.get(pk=stage.plan_id).next_look_at == NOON


@pytest.mark.parametrize("answer", ["wait", "fail"])
def test_an_approval_needs_a_reason_where_an_answer_is_not_green(stage: Stage, approver, answer: str):
    answered(stage.plan.stages.get(index=0), answer=answer)

    with pytest.raises(Refusal, match="1 gate does not pass"):
        approved(stage, approver, reason=" ")

    assert approved(stage, approver, reason="It is known.").reason == "It is known."


def test_an_approval_of_what_was_overridden_needs_a_reason(stage: Stage, approver):
    plan = stage.plan
    Plan.objects.filter(pk=plan.pk).update(sealed=plan.sealed | {"despite": {"reason": "NVIDIA said so."}})

    with pytest.raises(Refusal, match="despite a blocker"):
        approved(stage, approver)


def test_an_approval_on_no_evidence_at_all_needs_a_reason(stage: Stage, approver):
    stage.plan.stages.get(index=0).answers.all().delete()

    with pytest.raises(Refusal, match="no gate has evaluated a changed node"):
        approved(stage, approver)

    assert approved(stage, approver, reason="The canary is idle.").reason == "The canary is idle."


def test_an_approval_on_answers_that_nobody_gives_any_more_needs_a_reason(stage: Stage, approver):
    """Its cluster does not answer, or no worker runs: what was green then says nothing of now."""
    answered(stage.plan.stages.get(index=0), at=NOON - timedelta(seconds=61))

    with pytest.raises(Refusal, match="no gate was evaluated since 11:58:59 UTC"):
        approved(stage, approver)

    assert approved(stage, approver, reason="I looked at the nodes.").reason


@pytest.mark.parametrize("decide", [approve, reject])
@pytest.mark.parametrize("state", ["holding", "halted", "rolling-back", "aborting", "aborted", "promoted"])
def test_nothing_is_decided_on_a_plan_that_does_not_move(stage: Stage, approver, decide, state: str):
    in_state(stage.plan, state)

    with pytest.raises(Refusal):
        decide(stage, actor=approver, bundle_hash=bundle_for(stage).hash, reason="Yes.", now=NOON)


def test_a_halt_that_comes_between_look_and_decision_wins(stage: Stage, approver):
    Plan.objects.filter(pk=stage.plan_id).update(state="halted")  # the stage in memory still says promoting

    with pytest.raises(Refusal, match="halted"):
        approved(stage, approver)

    assert not Approval.objects.exists()


def test_a_pause_that_comes_between_look_and_decision_wins(stage: Stage, approver):
    stage.plan.commands.create(verb="pause", actor="ada", at=NOON, reason="Lunch.")

    with pytest.raises(Refusal, match="ada paused the plan"):
        approved(stage, approver)


def test_an_approval_that_is_too_old_makes_room_for_another(stage: Stage, approver):
    """It used to stand in the way of its giver for good: not counted any more, and not to be given again."""
    approved(stage, approver, reason="Fine.")
    plan = Plan.objects.get(pk=stage.plan_id)
    late = NOON + timedelta(hours=8, seconds=1)
    plan.take_lease(owner="worker-1", now=late)

    void_approvals(plan, plan.stages.all(), now=late)

    assert Approval.objects.get().void_reason == "The approval has expired. An approval is valid for 8 h."
    approved(stage, approver, reason="Fine.", now=late)
    assert Approval.objects.standing().count() == 1
