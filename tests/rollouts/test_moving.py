"""A move, its history and its announcement are one act, and the loser writes nothing."""

import pytest
from django.db import transaction

from edges.transition_errors import IllegalMove, LostRace
from fleet.messages import announce
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Plan, PlanEvent, Stage, Target
from tests.make import NOON
from tests.rollouts.rows import a_started_plan

pytestmark = pytest.mark.sqlite

MOVES = [
    (lambda plan: plan, PlanState.HALTED, PlanState.ABORTING, PlanState.DRAFT),
    (lambda plan: plan.stages.get(index=0), StageState.OPENING, StageState.ABANDONED, StageState.PASSED),
    (
        lambda plan: Target.objects.get(stage__plan=plan, node_name="node-0"),
        TargetState.RELEASING,
        TargetState.EXCLUDED,
        "released",
    ),
]
EACH = pytest.mark.parametrize(("row_of", "to", "other", "illegal"), MOVES, ids=["plan", "stage", "target"])


@pytest.fixture
def plan(cluster, owner) -> Plan:
    return a_started_plan(cluster, owner)


def moved(row, to, **given) -> None:
    row.move(to, **{"now": NOON, "actor": "ada", "reason": "Because."} | given)


@EACH
def test_a_move_is_written_with_its_history(plan: Plan, row_of, to, other, illegal):
    row = row_of(plan)
    was = row.state

    moved(row, to)

    fresh = type(row).objects.get(pk=row.pk)
    assert (fresh.state, fresh.state_since, fresh.reason) == (to, NOON, "Because.")
    event = PlanEvent.objects.filter(plan=plan).first()
    assert (event.was, event.to, event.actor, event.what) == (was, to, "ada", row._meta.model_name)


@EACH
def test_who_comes_second_loses_and_writes_nothing(plan: Plan, row_of, to, other, illegal):
    row, late = row_of(plan), row_of(Plan.objects.get(pk=plan.pk))
    moved(row, to)
    events = PlanEvent.objects.count()

    with pytest.raises(LostRace):
        moved(late, other)

    assert type(row).objects.get(pk=row.pk).state == to
    assert PlanEvent.objects.count() == events


@EACH
def test_a_move_that_is_not_in_the_table_is_refused(plan: Plan, row_of, to, other, illegal):
    row = row_of(plan)
    was = row.state

    with pytest.raises(IllegalMove):
        moved(row, type(row).states(illegal))

    assert type(row).objects.get(pk=row.pk).state == was


def test_a_long_reason_is_cut_and_not_refused(plan: Plan):
    moved(plan, PlanState.HALTED, reason="x" * 5000)

    assert len(Plan.objects.get(pk=plan.pk).reason) == 1000


def test_browsers_are_told_once_it_is_committed(plan: Plan, monkeypatch, django_capture_on_commit_callbacks):
    told = []
    monkeypatch.setattr(announce, "send", lambda groups, message: told.append((groups, message)))

    with django_capture_on_commit_callbacks(execute=True):
        moved(plan, PlanState.HALTED)
        assert told == []

    ((groups, message),) = [each for each in told if "topic" in each[1]]
    assert f"plan-{plan.pk}" in groups
    assert message["seq"] == PlanEvent.objects.first().pk
    assert message["topic"] == f"plan-{plan.pk}"
    assert {f"plan-{plan.pk}", f"plans-of-{plan.cluster_id}"} == set(message["keys"])


def test_nobody_is_told_of_what_was_rolled_back(plan: Plan, monkeypatch, django_capture_on_commit_callbacks):
    told = []
    monkeypatch.setattr(announce, "send", lambda *given: told.append(given))

    with django_capture_on_commit_callbacks(execute=True), transaction.atomic():
        moved(plan, PlanState.HALTED)
        transaction.set_rollback(True)

    assert told == []
    assert Stage.objects.filter(plan=plan).exists()
    assert Plan.objects.get(pk=plan.pk).state == PlanState.HOLDING


@pytest.mark.django_db(transaction=True)
def test_a_dead_channel_layer_undoes_no_move(plan: Plan, monkeypatch):
    def refuse(*_):
        raise ConnectionError

    monkeypatch.setattr(announce, "send", refuse)

    moved(plan, PlanState.HALTED)

    assert Plan.objects.get(pk=plan.pk).state == PlanState.HALTED
