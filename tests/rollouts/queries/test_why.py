"""Why a plan is not moving is one sentence in every state, and never a blank: silence there would look like health."""

from datetime import timedelta
from itertools import product

import pytest

from fleet.models import Node
from rollouts.commands import fleet_freezes
from rollouts.commands.plan_control import halt, pause
from rollouts.gates.base import GAVE_UP
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import GateOverride, Plan, Stage, Target
from rollouts.queries.driver_nodes import row_age
from rollouts.queries.plan_view import PlanOnPage, plan_on_page, rank, standings_of
from tests.make import NOON, a_finding, a_plan, a_window
from tests.rollouts.rows import a_started_plan

HOUR = timedelta(hours=1)
HELD_BY = ("nothing", "pause", "freeze", "window", "stop", "all of them")


def hold(plan: Plan, by: str) -> None:
    if by in ("pause", "all of them"):
        plan.commands.create(verb="pause", actor="ben", at=NOON, reason="Lunch.")
    if by in ("freeze", "all of them"):
        fleet_freezes.freeze(fleet_freezes.Where(), actor="ada", reason="Quarter end.", now=NOON)
    if by in ("window", "all of them"):
        a_window(plan.cluster)
    if by in ("stop", "all of them"):
        fleet_freezes.stop(actor="ada", reason="Smoke.", now=NOON)


@pytest.mark.django_db
@pytest.mark.parametrize(("state", "by"), list(product(PlanState, HELD_BY)))
def test_every_state_has_a_sentence_whatever_holds_it(state: PlanState, by: str):
    """Also where nothing was ever written down of why."""
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=state, reason="", waiting_for="")
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.PROMOTING)
    hold(plan, by)

    on_page = plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON)

    assert on_page.why.endswith((".", "!", "?"))
    assert on_page.why[0].isupper() or on_page.why.startswith("ben ")
    assert all(on_page.besides)
    if by == "all of them" and state in (PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK):
        assert on_page.why == "The fleet is stopped by ada: Smoke."


def looked_at(**given) -> PlanOnPage:
    """At noon, and a minute and a second after it was due again."""
    plan = a_plan()
    row = {"state": PlanState.PROMOTING, "waiting_for": "Canary: letting gpu-0 go.", "lease_until": NOON}
    due = NOON + timedelta(seconds=5)
    Plan.objects.filter(pk=plan.pk).update(**row | {"looked_at": NOON, "next_look_at": due} | given)
    plan = Plan.objects.select_related("cluster").get(pk=plan.pk)
    return plan_on_page(plan, now=due + timedelta(seconds=61))


@pytest.mark.django_db
def test_a_plan_that_no_worker_looks_at_says_so_and_what_it_said_then():
    """What it waited for then is not what it waits for now."""
    on_page = looked_at()

    assert on_page.why.startswith("No worker has evaluated it since 12:00 UTC. No node is released")
    assert "queue “rollouts”" in on_page.why
    assert on_page.besides == ["Last state: Canary: letting gpu-0 go."]
    assert looked_at(looked_at=None).why.startswith("No worker has evaluated it yet. ")


@pytest.mark.django_db
def test_what_a_person_has_told_it_comes_first_though_no_worker_has_heard_it():
    on_page = looked_at(state=PlanState.HALTED, reason="A gate failed.")

    assert on_page.why == "A gate failed."
    assert [said.partition(" since")[0] for said in on_page.besides] == ["No worker has evaluated it"]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "given",
    [
        {"next_look_at": NOON + HOUR},
        {"lease_until": NOON + timedelta(seconds=30)},
        {"next_look_at": NOON + timedelta(seconds=6)},
        {"state": PlanState.PROMOTED, "reason": "Every stage passed."},
    ],
    ids=["later", "in a long round", "for a minute", "over"],
)
def test_a_plan_that_is_not_due_or_being_looked_at_or_over_says_what_it_waits_for(given):
    assert "worker" not in " ".join([looked_at(**given).why, *looked_at(**given).besides])


@pytest.mark.django_db
def test_a_plan_outside_of_its_window_says_when_it_opens():
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.PROMOTING)
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.PROMOTING)
    window = a_window(plan.cluster)

    on_page = plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON)

    assert on_page.why == f"The maintenance window of cluster {window.cluster.name} is closed until Sunday 02:00 UTC."


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "until", "is_said"),
    [("promoting", NOON + HOUR, True), ("promoting", NOON, False), ("passed", NOON + HOUR, False)],
    ids=["in force", "run out", "of a stage that is over"],
)
def test_a_gate_that_is_overridden_is_shown_beside_it(state, until, is_said, time_machine):
    time_machine.move_to(NOON, tick=False)
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.PROMOTING)
    Stage.objects.filter(plan=plan, index=0).update(state=state)
    override = {"stage": plan.stages.get(index=0), "gate": "soak", "said": "Until 12:20.", "by": "ben"}
    GateOverride.objects.create(**override, at=NOON - 2 * HOUR, reason="Older.", until=until)
    GateOverride.objects.create(**override, at=NOON - HOUR, reason="Morning.", until=until)

    said = "Soak of Canary does not count until 2026-11-21 13:00 UTC: ben overrode it. Morning."
    on_page = plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON)
    assert on_page.overrides == ([said] if is_said else [])


@pytest.mark.django_db
def test_a_halt_says_who_and_a_gates_speaks_for_itself(cluster, owner):
    plan = a_started_plan(cluster, owner)
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.PROMOTING)
    plan.refresh_from_db()

    halt(plan, actor=owner, reason="Smoke.", now=NOON)

    assert plan_on_page(plan, now=NOON).why == f"{owner.get_username()} halted the plan: Smoke."
    Plan.objects.filter(pk=plan.pk).update(state_since=NOON + HOUR, reason="node-1 failed: 1, where 0 would be.")
    plan.refresh_from_db()
    assert plan_on_page(plan, now=NOON).why == "node-1 failed: 1, where 0 would be."


@pytest.mark.django_db
def test_one_that_was_paused_and_then_halted_is_halted_before_all(cluster, owner):
    plan = a_started_plan(cluster, owner)
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.PROMOTING)
    pause(plan, actor=owner, reason="Lunch.", now=NOON)

    halt(plan, actor=owner, reason="Smoke.", now=NOON + timedelta(minutes=1))

    plan.refresh_from_db()
    on_page = plan_on_page(plan, now=NOON + timedelta(minutes=1))
    who = owner.get_username()
    assert (on_page.why, on_page.besides) == (f"{who} halted the plan: Smoke.", [f"{who} paused the plan: Lunch."])


@pytest.mark.django_db
def test_a_cluster_that_was_seen_on_another_day_is_named_with_that_day(cluster, owner):
    plan = a_started_plan(cluster, owner)

    stale = row_age(plan, now=NOON + timedelta(days=2)).stale_reason

    assert f"was last observed at {NOON.day} {NOON:%B %Y} 12:00 UTC" in stale


@pytest.mark.django_db
def test_lists_say_at_once_who_paused_it(cluster, owner):
    """They show what was written down last, before any round has looked."""
    plan = a_started_plan(cluster, owner)
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.PROMOTING, waiting_for="Canary: letting node-1 go.")

    pause(plan, actor=owner, reason="Lunch.", now=NOON)

    plan.refresh_from_db()
    assert plan.waiting_for == plan_on_page(plan, now=NOON).why == f"{owner.get_username()} paused the plan: Lunch."


@pytest.mark.django_db
def test_a_plan_that_a_person_halted_says_which_nodes_failed_and_why():
    plan = a_plan()
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.HALTED, reason="A person stopped it.")
    reason = "PodDisruptionBudget team-a/web allows no eviction of team-a/web-0."
    Target.objects.filter(stage__plan=plan, node_name="gpu-0").update(state="failed", reason=reason)

    on_page = plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON)

    assert on_page.besides == [f"gpu-0 failed: {reason}"]
    assert on_page.halted_by is None


@pytest.mark.django_db
def test_a_cause_that_was_not_known_when_the_node_failed_is_that_of_its_finding():
    plan = a_plan()
    halted = f"gpu-0 failed: {GAVE_UP}"
    Plan.objects.filter(pk=plan.pk).update(state=PlanState.HALTED, reason=halted)
    Target.objects.filter(stage__plan=plan, node_name="gpu-0").update(state="failed", reason=GAVE_UP)
    node = Node.objects.get(cluster=plan.cluster, name="gpu-0")
    a_finding(plan.cluster, node=node, rule="upgrade-failed", causes=["The driver container crashes."])

    plan = Plan.objects.select_related("cluster").get(pk=plan.pk)
    on_page, (listed,) = plan_on_page(plan, now=NOON), standings_of([plan], now=NOON)

    assert (on_page.why, on_page.besides) == ("gpu-0 failed: The driver container crashes.", [])
    assert listed.why == on_page.why


def test_of_failing_gates_the_one_that_names_the_cause_is_first_and_no_other_order_changes():
    answers = [("fail", "driver_version"), ("pass", "failure_budget"), ("fail", "failure_budget"), ("wait", "soak")]

    assert sorted(answers, key=lambda each: rank(*each)) == [
        ("fail", "failure_budget"), ("fail", "driver_version"), ("wait", "soak"), ("pass", "failure_budget"),
    ]  # fmt: skip
