"""A rehearsal that a person requested, from the request to what an approver reads."""

from datetime import timedelta

import pytest

from fleet.messages import wake
from fleet.retention import tidy
from people.models import AuditEntry
from rollouts.api.rehearsals import RehearsalSerializer
from rollouts.commands import rehearsals
from rollouts.commands.refusals import Refusal
from rollouts.models import Plan, Rehearsal
from rollouts.queries.change_times import NodeTime, PastRounds
from rollouts.rehearsal import rehearsal_round
from rollouts.rehearsal.rehearsal_round import run_rehearsal
from rollouts.tasks import sweep_rounds
from tests.callers import now  # noqa: F401 (a fixture)
from tests.make import NOON, begun
from tests.rollouts.rows import a_draft, a_driver_cluster

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


class Clock:
    now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def plan(owner) -> Plan:
    return a_draft(a_driver_cluster(), owner)


def ask(plan: Plan, owner, fault: str = "") -> Rehearsal:
    return rehearsals.ask(plan, actor=owner, fault=fault, seed=1, now=NOON)


def run(row: Rehearsal, clock=None) -> Rehearsal:
    run_rehearsal(row.pk, owner="worker-1", clock=clock or Clock())
    row.refresh_from_db()
    return row


def test_a_worker_records_the_outcome_and_announces_it(plan: Plan, owner):
    row = run(ask(plan, owner, "bad-driver"))

    assert row.outcome["sentence"].startswith("The driver never becomes ready: stops in Canary, by driver_version: ")
    assert (row.outcome["stage"], row.outcome["harmed"], row.outcome["not_released"]) == ("Canary", 1, 2)
    assert (row.finished_at, row.next_look_at, row.trouble) == (NOON, None, "")
    assert list(plan.events.order_by("-pk").values_list("to", flat=True)[:2]) == ["rehearsed", "rehearse"]
    assert AuditEntry.objects.get(verb="rehearse").actor == owner.username


def test_the_time_of_a_node_is_that_of_past_plans(plan: Plan, owner, monkeypatch):
    usual = run(ask(plan, owner)).outcome["took_s"]
    slow = NodeTime(timedelta(minutes=20), timedelta(minutes=30), 5, "5 nodes of past plans")
    monkeypatch.setattr(PastRounds, "time_of", lambda *_: slow)

    assert run(ask(plan, owner)).outcome["took_s"] > usual + 20 * 60


def test_the_round_of_a_killed_worker_is_queued_again(plan: Plan, owner, monkeypatch):
    queued = []
    row = ask(plan, owner)
    row.take_lease(owner="killed", now=NOON)
    assert run(row).is_in_force

    Rehearsal.objects.update(next_look_at=NOON, lease_until=NOON)
    monkeypatch.setattr(wake, "queue", lambda *_, kwargs, **__: queued.append(kwargs))
    sweep_rounds()

    assert {"model": "Rehearsal", "key": row.pk} in queued
    assert run(row).outcome["is_complete"]


def test_a_second_request_is_refused_until_the_first_has_finished(plan: Plan, owner):
    first = ask(plan, owner)

    with pytest.raises(Refusal, match="A rehearsal is in progress"):
        ask(plan, owner)

    run(first)
    assert ask(plan, owner)


def test_a_plan_of_many_nodes_is_left_to_the_command(plan: Plan, owner, monkeypatch):
    monkeypatch.setattr(rehearsals, "MOST_NODES", 2)

    with pytest.raises(Refusal, match=f"takes 3 nodes, .* bin/manage rehearse {plan.pk}"):
        ask(plan, owner)


def test_a_draft_that_was_edited_since_is_not_rehearsed(plan: Plan, owner):
    row = ask(plan, owner)
    Plan.objects.update(revision=2)

    assert "changed or started since the request" in run(row).trouble


def test_a_plan_that_takes_no_node_says_so(plan: Plan, owner):
    row = ask(plan, owner)
    plan.cluster.nodes.update(is_unschedulable=True)

    assert "No stage of the plan has a node now." in run(row).trouble


def test_a_rehearsal_that_takes_too_long_ends_and_names_the_command(plan: Plan, owner):
    class SlowClock(Clock):
        def __call__(self):
            self.now += timedelta(seconds=20)
            return self.now

    row = run(ask(plan, owner), SlowClock())

    assert f"bin/manage rehearse {plan.pk}" in row.trouble
    assert row.outcome == {}


def test_a_long_rehearsal_shows_its_progress_until_it_ends(plan: Plan, owner, monkeypatch):
    class SlowClock(Clock):
        def __call__(self):
            self.now += timedelta(seconds=4)
            return self.now

    row, shown = ask(plan, owner), []
    monkeypatch.setattr(rehearsal_round, "plan_changed", lambda *_: shown.append(Rehearsal.objects.get(pk=row.pk)))
    run(row, SlowClock())

    assert shown[0].progress == {"released": 0, "nodes": 3}
    assert RehearsalSerializer(shown[0]).data["outcome"] is None


def test_a_worker_that_lost_its_turn_records_nothing(plan: Plan, owner, monkeypatch):
    row = ask(plan, owner)

    def lose_the_turn(*given, **named):
        Rehearsal.objects.update(epoch=7)
        return virtual_plan(*given, **named)

    virtual_plan = rehearsal_round.virtual_plan
    monkeypatch.setattr(rehearsal_round, "virtual_plan", lose_the_turn)

    assert run(row).is_in_force


def test_the_start_seals_the_newest_outcome_of_each_fault(plan: Plan, owner):
    run(ask(plan, owner, "bad-driver"))
    Plan.objects.update(revision=2)
    plan.refresh_from_db()
    for fault in ("ecc", "ecc", ""):
        run(ask(plan, owner, fault))

    sealed = begun(plan, owner).sealed["rehearsals"]

    assert [each["fault"] for each in sealed] == ["", "ecc"]
    assert sealed[0]["sentence"] == "No fault: every stage passes."


def test_old_rehearsals_are_deleted_but_for_one_that_has_still_to_run(plan: Plan, owner):
    old, waiting = ask(plan, owner), NOON - timedelta(days=500)
    tidy(now=NOON)
    assert Rehearsal.objects.filter(pk=old.pk).exists()
    Rehearsal.objects.update(finished_at=waiting, asked_at=waiting)
    running = ask(plan, owner)
    tidy(now=NOON)

    assert [row.pk for row in Rehearsal.objects.all()] == [running.pk]
