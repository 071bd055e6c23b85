import pytest
from django.db import OperationalError
from django.db.models import QuerySet

from edges.transition_errors import IllegalMove, LostRace
from fleet.models import Node
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from rollouts.commands import plan_control
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.lifecycle import PLAN_FINAL, PlanState, StageState, TargetState
from rollouts.models import Approval, Command, PendingCommand, Plan, PlanEvent, Stage, Target, Verb
from tests.make import NOON
from tests.rollouts.rows import a_started_plan, in_state, opened, wanted

S = PlanState
LEGAL = {
    "halt": {S.HOLDING, S.PROMOTING},
    "pause": {S.HOLDING, S.PROMOTING, S.ROLLING_BACK},
    "resume": {S.HALTED},
    "roll_back": {S.PROMOTING, S.HALTED},
    "abort": {S.HOLDING, S.PROMOTING, S.HALTED, S.ROLLING_BACK},
}
BECOMES = {"halt": S.HALTED, "resume": S.PROMOTING, "roll_back": S.ROLLING_BACK, "abort": S.ABORTING}


@pytest.fixture
def plan(cluster, owner) -> Plan:
    return a_started_plan(cluster, owner)


def told(plan: Plan, verb: str, actor, **given) -> Plan:
    getattr(plan_control, verb)(plan, **{"actor": actor, "reason": "Because.", "now": NOON} | given)
    return Plan.objects.get(pk=plan.pk)


@pytest.mark.parametrize("state", sorted(PlanState))
@pytest.mark.parametrize("verb", LEGAL)
def test_every_command_in_every_state(plan: Plan, owner, verb: str, state: PlanState):
    in_state(plan, state)

    if state in LEGAL[verb]:
        assert told(plan, verb, owner).state == BECOMES.get(verb, state)
        return

    with pytest.raises(Refusal):
        told(plan, verb, owner)
    after = Plan.objects.get(pk=plan.pk)
    assert after.state == state
    assert after.commands.exclude(verb=Verb.START).count() == 0


@pytest.mark.parametrize(
    ("verb", "state", "says"),
    [
        ("abort", S.ABORTING, "The plan is already being aborted."),
        ("halt", S.ABORTING, "The plan is already being aborted and cannot be halted."),
        ("roll_back", S.ABORTING, "The plan is already being aborted and cannot be rolled back."),
        ("roll_back", S.ROLLING_BACK, "The plan is already being rolled back."),
        ("abort", S.DRAFT, "The plan was not started yet, so you cannot abort it."),
    ],
)
def test_a_command_that_comes_twice_or_too_late_is_refused_in_words(plan: Plan, owner, verb, state, says):
    in_state(plan, state)

    with pytest.raises(Refusal) as refusal:
        told(plan, verb, owner)

    assert str(refusal.value) == says


def test_a_halt_halts_the_stages_that_are_open(plan: Plan, owner):
    in_state(plan, S.PROMOTING)
    plan.stages.filter(index=0).update(state=StageState.PROMOTING)

    told(plan, "halt", owner)

    assert [stage.state for stage in plan.stages.order_by("index")] == ["halted", "waiting", "waiting"]


def test_giving_up_the_rollback_closes_its_stage_too(plan: Plan, owner):
    in_state(plan, S.ROLLING_BACK)
    plan.stages.update(state=StageState.PROMOTING)

    told(plan, "abort", owner)

    assert {stage.state for stage in plan.stages.all()} == {"abandoned"}


def test_a_command_is_written_down_with_who_and_why(plan: Plan, owner):
    told(plan, "halt", owner, reason="Fans are loud.")

    command = plan.commands.get(verb=Verb.HALT)
    assert (command.actor, command.reason) == ("owner", "Fans are loud.")
    assert AuditEntry.objects.filter(subject=plan.mark).last().verb == "halt"
    assert list(broken_links(AuditEntry.objects.filter(subject=plan.mark))) == []


def test_a_stop_that_a_full_disk_keeps_from_the_plan_is_not_said_to_wait_for_a_lock(plan: Plan, owner, monkeypatch):
    in_state(plan, S.PROMOTING)
    monkeypatch.setattr(plan_control, "carry_out_once", _failing)

    said = plan_control.halt(plan, actor=owner, reason="Because.", now=NOON)

    assert said.startswith("Halted: no more nodes are released. The database could not record it in the plan.")
    assert PendingCommand.objects.restraining().get().plan == plan


def test_a_stop_that_was_recorded_before_the_database_failed_is_done(plan: Plan, owner, monkeypatch):
    in_state(plan, S.PROMOTING)
    monkeypatch.setattr(Plan, "wake", _failing)

    assert plan_control.halt(plan, actor=owner, reason="Because.", now=NOON) == ""
    assert Plan.objects.get(pk=plan.pk).state == S.HALTED


def test_a_stop_that_is_neither_in_force_nor_recorded_is_an_error(plan: Plan, owner, monkeypatch):
    in_state(plan, S.PROMOTING)

    def lose(asked: PendingCommand, **_: object) -> None:
        PendingCommand.objects.filter(pk=asked.pk).delete()
        _failing()

    monkeypatch.setattr(plan_control, "record_stop", lose)

    with pytest.raises(OperationalError):
        plan_control.halt(plan, actor=owner, reason="Because.", now=NOON)


def _failing(*_: object, **__: object) -> None:
    raise OperationalError("database or disk is full")


@pytest.mark.parametrize("verb", ["halt", "pause", "abort"])
def test_the_same_key_again_is_the_same_command(plan: Plan, owner, verb: str):
    told(plan, verb, owner, key="k-1")

    told(plan, verb, owner, key="k-1")

    assert Command.objects.filter(plan=plan, key="k-1").count() == 1


def test_a_command_for_a_state_that_is_no_more_is_refused(plan: Plan, owner):
    with pytest.raises(OutOfDate):
        told(plan, "halt", owner, expected_state="promoting")

    assert Plan.objects.get(pk=plan.pk).state == S.HOLDING


def test_a_person_who_loses_to_a_round_is_tried_again(plan: Plan, owner, monkeypatch):
    """Abort is retried when it loses a race (design: Promoting)."""
    move, lost = Plan.move, []

    def lose_twice(self, *args, **given):
        if len(lost) < 2:
            lost.append(1)
            raise LostRace("A round was faster.")
        move(self, *args, **given)

    monkeypatch.setattr(Plan, "move", lose_twice)

    assert told(plan, "abort", owner).state == S.ABORTING
    assert plan.commands.filter(verb=Verb.ABORT).count() == 1


def test_a_command_that_always_loses_says_so(plan: Plan, owner, monkeypatch):
    def always_lose(self, *_, **__):
        raise LostRace("A round was faster.")

    monkeypatch.setattr(Plan, "move", always_lose)

    with pytest.raises(LostRace):
        told(plan, "abort", owner)
    assert not plan.commands.filter(verb=Verb.ABORT).exists()


def test_a_pause_stands_until_somebody_resumes(plan: Plan, owner):
    told(plan, "pause", owner)
    with pytest.raises(Refusal, match="already"):
        told(plan, "pause", owner)

    told(plan, "resume", owner)

    assert not plan.commands.in_force().exists()
    told(plan, "pause", owner)


@pytest.mark.parametrize(("is_written", "to"), [(True, S.PROMOTING), (False, S.HOLDING)])
def test_a_halted_plan_is_taken_up_where_it_was(plan: Plan, owner, is_written: bool, to: PlanState):
    in_state(plan, S.HALTED, is_written=is_written)

    assert told(plan, "resume", owner).state == to


def test_a_plan_halted_between_intent_and_write_still_has_to_write(plan: Plan, owner):
    """The intent is repeated, never forgotten: else the old version would be taken for a foreign one."""
    in_state(plan, S.HALTED)
    Plan.objects.filter(pk=plan.pk).update(armed_since=None)

    assert told(plan, "resume", owner).state == S.HOLDING


def test_a_resumed_stage_goes_on_where_it_was(plan: Plan, owner):
    in_state(plan, S.HALTED)
    plan.stages.filter(index__in=[0, 1]).update(state=StageState.HALTED)
    canary = plan.stages.get(index=0)
    canary.waves.create(number=1, decided_at=NOON, reason="")
    canary.approvals.create(by="amy", at=NOON, bundle_hash="", bundle={}, is_rejection=False)

    told(plan, "resume", owner)

    assert [stage.state for stage in plan.stages.order_by("index")][:2] == ["promoting", "opening"]


def test_nothing_is_rolled_back_that_was_not_written(plan: Plan, owner):
    in_state(plan, S.HALTED, is_written=False)

    with pytest.raises(Refusal, match="Abort the plan instead"):
        told(plan, "roll_back", owner)


@pytest.mark.parametrize("verb", ["roll_back", "abort"])
def test_a_rollback_closes_the_stages_and_ends_a_pause(plan: Plan, owner, verb: str):
    in_state(plan, S.PROMOTING)
    plan.stages.filter(index=0).update(state=StageState.PASSED)
    told(plan, "pause", owner)

    told(plan, verb, owner)

    assert [stage.state for stage in plan.stages.order_by("index")] == ["passed", "abandoned", "waiting"]
    assert not plan.commands.in_force().exists()


def test_a_command_has_the_plan_looked_at_now(plan: Plan, owner):
    Plan.objects.filter(pk=plan.pk).update(next_look_at=NOON.replace(hour=20))

    assert told(plan, "halt", owner).next_look_at == NOON


def test_a_held_node_can_be_taken_out_and_stays_held(plan: Plan, owner):
    target = Target.objects.get(stage__plan=plan, node_name="node-1")

    plan_control.exclude(target, actor=owner, reason="Its fan.", now=NOON)

    assert Target.objects.get(pk=target.pk).state == TargetState.EXCLUDED
    assert wanted(plan)["node-1"]
    assert PlanEvent.objects.filter(plan=plan, target=target, to="excluded").exists()
    said = f"{owner.get_username()} excluded node-1. The other nodes are checked."
    assert Plan.objects.get(pk=plan.pk).waiting_for == said, "and not that somebody has to take it out"


def test_a_failed_node_that_is_taken_out_stays_as_it_is(plan: Plan, owner):
    """It was let go: to want it held again would make it an escape, and halt the plan for ever."""
    plan.holds.filter(node_name="node-1").update(is_wanted=False)
    Target.objects.filter(stage__plan=plan, node_name="node-1").update(state=TargetState.FAILED)
    target = Target.objects.get(stage__plan=plan, node_name="node-1")

    plan_control.exclude(target, actor=owner, reason="Its fan.", now=NOON)

    assert not wanted(plan)["node-1"]


@pytest.mark.parametrize("state", [TargetState.HELD, TargetState.FAILED])
def test_the_last_node_of_a_stage_that_others_wait_for_stays_in_it(plan: Plan, owner, state: TargetState):
    """The stage would have nothing to evaluate, and wait for good."""
    target = last_of_the_canary(plan, state)

    with pytest.raises(Refusal, match="node-0 is the last node of Canary"):
        plan_control.exclude(target, actor=owner, reason="Its fan.", now=NOON)

    assert Target.objects.get(pk=target.pk).state == state
    assert not plan.commands.filter(verb=Verb.EXCLUDE).exists()


def last_of_the_canary(plan: Plan, state: TargetState) -> Target:
    Target.objects.filter(stage__plan=plan, node_name="node-0").update(state=state)
    return Target.objects.get(stage__plan=plan, node_name="node-0")


@pytest.mark.parametrize("state", [TargetState.CHANGING, TargetState.CHANGED, TargetState.RELEASED])
def test_a_node_that_has_begun_cannot_be_taken_out(plan: Plan, owner, state: TargetState):
    Target.objects.filter(stage__plan=plan, node_name="node-0").update(state=state)

    with pytest.raises((IllegalMove, Refusal)):
        plan_control.exclude(Target.objects.get(node_name="node-0"), actor=owner, reason="No.", now=NOON)


@pytest.mark.parametrize("state", [TargetState.CHANGING, TargetState.CHANGED])
def test_a_node_that_left_the_cluster_can_be_taken_out_whatever_it_was_doing(plan: Plan, owner, state: TargetState):
    Target.objects.filter(stage__plan=plan, node_name="node-0").update(state=state)
    Node.objects.filter(name="node-0").delete()

    plan_control.exclude(Target.objects.get(node_name="node-0"), actor=owner, reason="It was scrapped.", now=NOON)

    assert Target.objects.get(node_name="node-0").state == TargetState.EXCLUDED


@pytest.mark.parametrize(
    ("was", "counts"),
    [
        ({"state": TargetState.CHANGED}, True),
        ({"state": TargetState.RELEASED}, True),
        ({"state": TargetState.HELD, "retried_at": NOON}, True),
        ({"state": TargetState.HELD}, False),
        ({"state": TargetState.FAILED}, False),  # a person gives it up, as if it were there
    ],
)
def test_a_node_that_went_after_it_was_released_counts_as_failed_whoever_takes_it_out(plan: Plan, owner, was, counts):
    """The next round would have taken it out as lost: a person who is quicker must not free its place in the budget."""
    plan.stages.filter(index=0).update(state=StageState.PROMOTING)
    Target.objects.filter(stage__plan=plan, node_name="node-0").update(**was)
    Node.objects.filter(name="node-0").delete()

    plan_control.exclude(Target.objects.get(node_name="node-0"), actor=owner, reason="It was scrapped.", now=NOON)

    assert Target.objects.get(node_name="node-0").is_lost is counts


def test_a_node_that_goes_after_its_stage_has_passed_counts_no_more(plan: Plan, owner):
    plan.stages.filter(index=0).update(state=StageState.PASSED)
    Target.objects.filter(stage__plan=plan, node_name="node-0").update(state=TargetState.CHANGED)
    Node.objects.filter(name="node-0").delete()

    plan_control.exclude(Target.objects.get(node_name="node-0"), actor=owner, reason="It was scrapped.", now=NOON)

    assert not Target.objects.get(node_name="node-0").is_lost


def test_a_resumed_plan_asks_anew_after_a_rejection(plan: Plan, owner):
    stage = opened(plan)
    no = Approval.objects.create(stage=stage, bundle={}, bundle_hash="x", by="amy", at=NOON, is_rejection=True)
    told(plan, "halt", owner)

    told(plan, "resume", owner)

    no.refresh_from_db()
    assert no.void_at == NOON


def test_nothing_is_taken_out_of_a_plan_that_is_over(plan: Plan, owner):
    in_state(plan, S.ABORTED)
    assert S.ABORTED in PLAN_FINAL

    with pytest.raises(Refusal):
        plan_control.exclude(Target.objects.get(node_name="node-0"), actor=owner, reason="No.", now=NOON)

    assert Stage.objects.filter(plan=plan).exists()


@pytest.fixture
def ends_first(plan: Plan, monkeypatch) -> Plan:
    """A round ends the plan after a person has read it, and before they have its lock."""
    in_state(plan, S.PROMOTING)
    lock = QuerySet.select_for_update

    def as_it_ends(rows: QuerySet, **given) -> QuerySet:
        Plan.objects.filter(pk=plan.pk).update(state=S.PROMOTED)
        return lock(rows, **given)

    monkeypatch.setattr(QuerySet, "select_for_update", as_it_ends)
    return plan


@pytest.mark.parametrize("verb", [*LEGAL, "complete"])
def test_a_command_that_comes_as_the_plan_ends_is_refused(ends_first: Plan, owner, verb: str):
    with pytest.raises(Refusal, match="promoted"):
        told(ends_first, verb, owner, expected_state="promoting")

    assert not ends_first.commands.exclude(verb=Verb.START).exists()


def test_no_node_is_taken_out_of_a_plan_as_it_ends(ends_first: Plan, owner):
    target = Target.objects.get(node_name="node-0")

    with pytest.raises(Refusal, match="promoted"):
        plan_control.exclude(target, actor=owner, reason="No.", now=NOON)

    assert Target.objects.get(node_name="node-0").state == TargetState.HELD
    assert not ends_first.commands.exclude(verb=Verb.START).exists()


@pytest.mark.parametrize(("verb", "says"), [("halt", "Halting"), ("abort", "Aborting")])
def test_what_was_waited_for_before_a_command_is_not_said_after_it(plan: Plan, owner, verb: str, says: str):
    Plan.objects.filter(pk=plan.pk).update(waiting_for="Canary: 20 min of 30 min to go.")

    told(plan, verb, owner)

    plan.refresh_from_db()
    assert plan.waiting_for.startswith(says)
