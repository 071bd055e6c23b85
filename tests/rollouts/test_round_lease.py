"""One worker at a time, no wake lost, and a dead worker costs a lease."""

from datetime import timedelta

import pytest

from edges.transition_errors import LostRace
from fleet.messages import wake
from rollouts.commands.plan_control import halt
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.models.plan import LEASE, wake_plans
from tests.make import NOON
from tests.rollouts.rows import a_started_plan, in_state

SECOND = timedelta(seconds=1)


@pytest.fixture
def plan(cluster, owner) -> Plan:
    return a_started_plan(cluster, owner)


@pytest.fixture
def queued(monkeypatch) -> list[dict]:
    found: list[dict] = []
    monkeypatch.setattr(wake, "queue", lambda _task, **given: found.append(given["kwargs"]))
    return found


def again(plan: Plan) -> Plan:
    return Plan.objects.get(pk=plan.pk)


def is_due(plan: Plan, at) -> bool:
    return Plan.objects.due(now=at).filter(pk=plan.pk).exists()


def test_one_worker_takes_the_lease_and_the_other_does_not(plan: Plan):
    other = again(plan)

    assert plan.take_lease(owner="one", now=NOON)
    assert not other.take_lease(owner="two", now=NOON)

    assert (again(plan).epoch, again(plan).lease_owner) == (1, "one")


def test_a_lease_is_nobodys_while_its_lease_lasts(plan: Plan):
    plan.take_lease(owner="one", now=NOON)

    assert not again(plan).take_lease(owner="two", now=NOON + LEASE - SECOND)
    assert again(plan).take_lease(owner="two", now=NOON + LEASE)


def test_a_worker_whose_lease_was_taken_cannot_keep_it(plan: Plan):
    plan.take_lease(owner="one", now=NOON)
    again(plan).take_lease(owner="two", now=NOON + LEASE)

    with pytest.raises(LostRace):
        plan.keep_lease(now=NOON + LEASE)

    assert again(plan).lease_owner == "two"


def test_keeping_a_lease_moves_it(plan: Plan):
    plan.take_lease(owner="one", now=NOON)

    plan.keep_lease(now=NOON + 5 * SECOND)

    assert again(plan).lease_until == NOON + 5 * SECOND + LEASE


def test_a_worker_whose_lease_was_taken_does_not_end_the_others(plan: Plan):
    plan.take_lease(owner="one", now=NOON)
    other = again(plan)
    other.take_lease(owner="two", now=NOON + LEASE)

    was_woken = plan.end_lease(now=NOON + LEASE, next_look_at=NOON, waiting_for="Nothing.")

    assert not was_woken  # by whom is the other's to tell
    assert again(plan).lease_until == NOON + 2 * LEASE
    assert again(plan).waiting_for == ""


def test_an_ended_lease_is_free_and_says_why_it_waits(plan: Plan):
    plan.take_lease(owner="one", now=NOON)

    was_woken = plan.end_lease(now=NOON + SECOND, next_look_at=NOON + 9 * SECOND, waiting_for="An approval.")

    row = again(plan)
    assert not was_woken
    assert (row.waiting_for, row.looked_at) == ("An approval.", NOON + SECOND)
    assert row.next_look_at == NOON + 9 * SECOND
    assert row.take_lease(owner="two", now=NOON + SECOND)


def test_a_round_does_not_talk_over_what_a_person_said_in_the_meantime(plan: Plan, owner):
    plan.take_lease(owner="one", now=NOON)
    halt(again(plan), actor=owner, reason="Smoke.", now=NOON + SECOND)

    plan.end_lease(now=NOON + 2 * SECOND, next_look_at=NOON + 9 * SECOND, waiting_for="Canary: letting node-1 go.")

    assert again(plan).waiting_for == "Halting: released nodes that have not begun are held again."
    assert is_due(plan, NOON + 2 * SECOND)


def test_what_was_said_before_the_lease_was_taken_gives_way_to_the_round(plan: Plan, owner):
    row = again(plan)
    halt(again(plan), actor=owner, reason="Smoke.", now=NOON)
    row.take_lease(owner="one", now=NOON)

    row.end_lease(now=NOON + SECOND, next_look_at=NOON + 9 * SECOND, waiting_for="Nothing was on the way.")

    assert again(plan).waiting_for == "Nothing was on the way."


def test_a_killed_workers_plan_comes_due_when_its_lease_is_over(plan: Plan):
    plan.take_lease(owner="one", now=NOON)

    assert not is_due(plan, NOON + LEASE - SECOND)
    assert is_due(plan, NOON + LEASE)
    assert again(plan).take_lease(owner="two", now=NOON + LEASE)


def test_a_wake_during_a_round_is_not_lost(plan: Plan, queued: list[dict]):
    plan.take_lease(owner="one", now=NOON)
    again(plan).wake(now=NOON + SECOND)

    was_woken = plan.end_lease(now=NOON + 2 * SECOND, next_look_at=NOON + timedelta(hours=1), waiting_for="")

    assert was_woken
    assert is_due(plan, NOON + 2 * SECOND)
    assert queued == [{"model": "Plan", "key": plan.pk}]


def test_a_storm_of_wakes_is_one_message(plan: Plan, queued: list[dict]):
    Plan.objects.filter(pk=plan.pk).update(next_look_at=NOON + timedelta(hours=1))

    for _ in range(5):
        again(plan).wake(now=NOON)

    assert len(queued) == 1


@pytest.mark.parametrize("state", [PlanState.DRAFT, PlanState.ABORTED, PlanState.PROMOTED])
def test_a_plan_that_is_not_under_way_is_never_woken(plan: Plan, queued: list[dict], state: PlanState):
    in_state(plan, state)
    Plan.objects.filter(pk=plan.pk).update(next_look_at=NOON + timedelta(hours=1))

    wake_plans(Plan.objects.all(), now=NOON)

    assert queued == []
    assert not is_due(plan, NOON + timedelta(hours=2))
