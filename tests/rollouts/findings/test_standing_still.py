"""No wait is without an end, and somebody to ask (the seventh of ten mistakes, docs/hazards.md)."""

from datetime import datetime, timedelta

import pytest

from fleet.models import Observer
from health.evaluation import evaluation_round
from health.models import Finding
from operations.models import Freeze
from rollouts.commands import plan_control
from rollouts.findings.stalled_plans import OF_PEOPLE, STILL, UNLOOKED
from rollouts.models import Hold, Plan, Stage, Target
from tests import make
from tests.make import NOON
from tests.reports import told
from tests.rollouts.rows import answered

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)  # for which a gate of these plans may wait


def a_plan(state: str) -> Plan:
    plan = make.a_plan()
    looked = {"waiting_for": "The operator is asked.", "next_look_at": NOON + 365 * OF_PEOPLE}
    Plan.objects.filter(pk=plan.pk).update(state=state, started_by="ada", **looked)
    return Plan.objects.get(pk=plan.pk)


def said(plan: Plan, at: datetime) -> list[str]:
    return [told(wrong) for _, wrong in STILL.say(plan.cluster, now=at)]


@pytest.mark.parametrize("state", ["holding", "rolling-back", "aborting"])
def test_what_waits_for_no_person_is_told_once_a_gate_would_have_asked(state):
    plan = a_plan(state)

    assert said(plan, NOON + HOUR) == []
    (text,) = said(plan, NOON + HOUR + timedelta(seconds=1))
    assert text == (
        f"Plan #{plan.pk} “New driver” is stalled\nNo node, gate or stage has changed for more than 1 h.\n"
        f"Since: 2026-11-21 12:00:00 UTC\nState: {state}\nWaits for: The operator is asked.\nStarted by: ada"
    )


def test_people_have_a_day():
    plan = a_plan("promoting")

    assert said(plan, NOON + OF_PEOPLE) == []
    assert len(said(plan, NOON + OF_PEOPLE + HOUR)) == 1


def paused(plan: Plan, at: datetime) -> None:
    """And a worker has looked since."""
    plan_control.pause(plan, actor=make.a_user("ben", role="operator"), reason="Lunch.", now=at)
    Plan.objects.filter(pk=plan.pk).update(next_look_at=NOON + 365 * OF_PEOPLE)


@pytest.mark.parametrize("state", ["promoting", "rolling-back"])
def test_a_pause_is_not_forgotten_and_names_who_made_it(state):
    plan = a_plan(state)
    paused(plan, NOON + HOUR)

    assert said(plan, NOON + HOUR + OF_PEOPLE) == []
    (text,) = said(plan, NOON + HOUR + OF_PEOPLE + HOUR)
    assert "ben paused the plan: Lunch." in text


@pytest.mark.parametrize(
    ("state", "moved"), [("holding", {"placed_at": NOON + HOUR}), ("aborting", {"freed_at": NOON + HOUR})]
)
def test_a_label_that_was_seen_to_come_or_go_is_a_move(state, moved):
    plan = a_plan(state)
    Hold.objects.filter(plan=plan, node_name="gpu-1").update(**moved)

    assert said(plan, NOON + 2 * HOUR) == []
    assert len(said(plan, NOON + 3 * HOUR)) == 1


def soaking(*, evaluated_at: datetime) -> Plan:
    plan = a_plan("promoting")
    Stage.objects.filter(plan=plan, index=0).update(state="soaking")
    answered(plan.stages.get(index=0), "soak", "wait", at=evaluated_at)
    return plan


def test_a_soak_has_an_end_of_its_own():
    assert said(soaking(evaluated_at=NOON + 7 * OF_PEOPLE), NOON + 7 * OF_PEOPLE + HOUR) == []


def test_a_soak_whose_gates_nobody_evaluates_is_reported():
    """Its rounds fail, or its cluster does not answer: no gate is asked, so that none runs out of wait timeout."""
    plan = soaking(evaluated_at=NOON + HOUR)

    (text,) = said(plan, NOON + 2 * HOUR + timedelta(seconds=1))

    assert "No gate has been evaluated for more than 1 h.\nSince: 2026-11-21 13:00:00 UTC" in text


def test_a_pause_that_outlives_the_soak_has_none():
    plan = a_plan("promoting")
    Stage.objects.filter(plan=plan, index=0).update(state="soaking")
    paused(plan, NOON)

    (text,) = said(plan, NOON + OF_PEOPLE + HOUR)
    assert "ben paused the plan: Lunch." in text


def frozen(plan: Plan, **given) -> None:
    Freeze.objects.create(cluster=plan.cluster, by="bea", at=NOON, reason="Fair.", **given)


def stopped(_: Plan) -> None:
    Freeze.objects.create(by="bea", at=NOON, reason="Fire.", binds_rollbacks=True, is_stop=True)


@pytest.mark.parametrize("state", ["holding", "promoting"])
def test_a_freeze_with_an_end_has_one(state):
    plan = a_plan(state)
    frozen(plan, until=NOON + 9 * OF_PEOPLE)

    assert said(plan, NOON + 8 * OF_PEOPLE) == []


@pytest.mark.parametrize(("state", "bound"), [("holding", frozen), ("holding", stopped), ("rolling-back", stopped)])
def test_whom_a_freeze_or_the_stop_keeps_from_going_waits_for_people(state, bound):
    plan = a_plan(state)
    bound(plan)

    assert said(plan, NOON + OF_PEOPLE) == []
    assert len(said(plan, NOON + OF_PEOPLE + HOUR)) == 1


def test_a_freeze_that_does_not_bind_a_rollback_excuses_none():
    plan = a_plan("rolling-back")
    frozen(plan, until=NOON + 9 * OF_PEOPLE)

    assert len(said(plan, NOON + 2 * HOUR)) == 1


def test_a_stage_whose_nodes_all_wait_for_their_window_is_not_still():
    plan = a_plan("promoting")
    plan.stages.filter(index=0).update(state="promoting")
    make.a_window(plan.cluster, rule="FREQ=WEEKLY", opens_at="10:00")

    assert said(plan, NOON + 6 * OF_PEOPLE) == []
    Target.objects.filter(stage__plan=plan, stage__index=0).update(state="changing")
    assert len(said(plan, NOON + 6 * OF_PEOPLE)) == 1


@pytest.mark.parametrize(
    ("window", "approval", "told"), [("closed", "pass", 0), ("never", "pass", 1), ("closed", "wait", 1)]
)
def test_a_stage_that_opens_with_its_window_is_not_still_unless_somebody_is_asked(window, approval, told):
    plan = a_plan("promoting")
    plan.stages.filter(index=0).update(state="opening")
    stage = plan.stages.get(index=0)
    answered(stage, "window", "wait", cause=window)
    answered(stage, "approval", approval)

    assert len(said(plan, NOON + 3 * OF_PEOPLE)) == told


@pytest.mark.parametrize(("cause", "told"), [("bound", 0), ("short", 1)])
def test_a_stage_that_no_gate_keeps_from_opening_with_its_window_is_not_still(cause, told):
    """It has no gate `window`: the headroom waits for it."""
    plan = a_plan("promoting")
    plan.stages.filter(index=0).update(state="opening")
    answered(plan.stages.get(index=0), "headroom", "wait", cause=cause)
    make.a_window(plan.cluster, rule="FREQ=WEEKLY", opens_at="10:00")

    assert len(said(plan, NOON + 6 * OF_PEOPLE)) == told


MINUTE = timedelta(minutes=1)
NOT_RUN = "No worker runs plan #{} “New driver”"


def looked_at(state: str, at: datetime, *, due: datetime) -> Plan:
    plan = a_plan(state)
    if state == "soaking":
        Stage.objects.filter(plan=plan, index=0).update(state="soaking")
        Plan.objects.filter(pk=plan.pk).update(state="promoting")
    Plan.objects.filter(pk=plan.pk).update(looked_at=at, next_look_at=due, epoch=7)
    return Plan.objects.get(pk=plan.pk)


def missed_round_text(plan: Plan, at: datetime) -> list[tuple[str, str]]:
    return [(subject, told(wrong)) for subject, wrong in UNLOOKED.say(plan.cluster, now=at)]


@pytest.mark.parametrize("state", ["holding", "promoting", "soaking", "halted", "rolling-back", "aborting"])
def test_a_plan_of_any_state_at_which_no_worker_looks_is_told_and_does_not_stand_still_besides(state):
    plan = looked_at(state, NOON, due=NOON + timedelta(seconds=5))

    assert missed_round_text(plan, NOON + MINUTE) == []
    ((subject, text),) = missed_round_text(plan, NOON + 2 * MINUTE)
    assert subject == f"plan {plan.pk} round 7"
    assert text.startswith(f"{NOT_RUN.format(plan.pk)}\nNo node is released or held. No gate is evaluated.")
    assert "Last round: 2026-11-21 12:00:00 UTC" in text
    assert said(plan, NOON + 3 * OF_PEOPLE) == []


@pytest.mark.parametrize("state", ["draft", "promoted", "rolled-back", "aborted", "discarded"])
def test_nobody_has_to_look_at_what_is_no_plan_under_way(state):
    assert missed_round_text(looked_at(state, NOON, due=NOON), NOON + OF_PEOPLE) == []


def test_a_plan_that_says_when_its_cluster_is_asked_again_is_looked_at():
    assert missed_round_text(looked_at("promoting", NOON, due=NOON + HOUR), NOON + HOUR) == []


def open_findings(plan: Plan) -> list[str]:
    return [finding.title for finding in Finding.objects.open().filter(rule=UNLOOKED.key)]


@pytest.mark.parametrize("ahead", [timedelta(0), HOUR], ids=["with our clock", "with a clock that is ahead"])
def test_that_no_round_begins_is_told_by_the_clock_of_whoever_evaluates(ahead):
    """The worker that died has written when the plan is due, by its own."""
    plan = looked_at("promoting", NOON + ahead, due=NOON + ahead + timedelta(seconds=5))
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON + OF_PEOPLE)

    evaluation_round.evaluate_cluster(plan.cluster, now=NOON + 2 * MINUTE)
    assert open_findings(plan) == []
    evaluation_round.evaluate_cluster(plan.cluster, now=NOON + 3 * MINUTE)

    assert open_findings(plan) == [NOT_RUN.format(plan.pk)]
    Plan.objects.filter(pk=plan.pk).update(looked_at=NOON + 3 * MINUTE, next_look_at=NOON + 4 * MINUTE, epoch=8)
    evaluation_round.evaluate_cluster(plan.cluster, now=NOON + 3 * MINUTE)
    assert open_findings(plan) == []


@pytest.mark.parametrize("off", [-HOUR, HOUR], ids=["late", "ahead"])
def test_a_worker_that_goes_on_is_not_called_away_for_its_clock(off):
    plan = looked_at("promoting", NOON, due=NOON)
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON + OF_PEOPLE)

    for number in range(1, 13):
        at = NOON + number * MINUTE / 2
        Plan.objects.filter(pk=plan.pk).update(looked_at=at + off, next_look_at=at + off, epoch=number)
        evaluation_round.evaluate_cluster(plan.cluster, now=at)
        assert open_findings(plan) == []


@pytest.mark.parametrize("state", ["draft", "halted", "promoted", "rolled-back", "aborted"])
def test_what_is_over_or_told_of_elsewhere_stands_for_none(state):
    assert said(a_plan(state), NOON + 30 * OF_PEOPLE) == []


def test_it_is_a_finding_that_leads_to_the_plan_until_something_moves():
    plan = a_plan("rolling-back")
    Observer.objects.create(cluster=plan.cluster, lease_until=NOON + OF_PEOPLE)

    evaluation_round.evaluate_cluster(plan.cluster, now=NOON + 2 * HOUR)
    finding = Finding.objects.get(rule=STILL.key)
    assert (finding.severity, finding.page) == ("warning", f"/plans/{plan.pk}")

    plan.move("aborting", now=NOON + 2 * HOUR, actor="ada", reason="Enough.")
    evaluation_round.evaluate_cluster(plan.cluster, now=NOON + 2 * HOUR)
    assert not Finding.objects.open().filter(rule=STILL.key).exists()
