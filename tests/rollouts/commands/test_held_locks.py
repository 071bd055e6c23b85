"""A transaction that hangs holds the rows of plans: a stop, a halt and a pause are in force all the same (Z40)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from operations.models import Freeze
from people.models import AuditEntry
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.pending_commands import record_pending
from rollouts.models import PendingCommand, Plan, Stage, Target
from rollouts.queries.plan_view import plan_on_page
from rollouts.queries.stage_windows import why_not_released
from tests.callers import calling
from tests.make import NOON, a_fleet, a_plan, a_token, a_user
from tests.patience import PATIENCE_S
from tests.rollouts.rows import in_state

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer: who hangs stops all others"),
]


@contextmanager
def held(lock: Callable[[], object]) -> Iterator[Thread]:
    """Another transaction that holds locks and does nothing more, for as long as the block runs."""
    is_held, may_end = Event(), Event()

    def hang() -> None:
        try:
            with transaction.atomic():
                lock()
                is_held.set()
                may_end.wait(PATIENCE_S)
        finally:
            connection.close()

    thread = Thread(target=hang)
    thread.start()
    assert is_held.wait(PATIENCE_S)
    try:
        yield thread
    finally:
        may_end.set()
        thread.join()


def promoting() -> Plan:
    plan = a_plan(a_fleet("north"))
    in_state(plan, "promoting")
    return plan


def locks(plan: Plan) -> Callable[[], object]:
    """As strong as a lock on a row can be: a foreign key to it waits, too."""
    return lambda: list(Plan.objects.select_for_update().filter(pk=plan.pk))


def why_held(plan: Plan) -> str:
    stage = Stage.objects.select_related("plan").filter(plan=plan).forward().first()
    return why_not_released(stage, list(Target.objects.filter(stage=stage)), now=NOON)


@pytest.mark.parametrize(
    ("verb", "done", "noun", "says"),
    [
        (plan_control.halt, "Halted", "halt", "ada halted the plan: Smoke."),
        (plan_control.pause, "Paused", "pause", "ada paused the plan: Smoke."),
    ],
)
def test_a_halt_and_a_pause_are_in_force_while_the_row_of_the_plan_is_locked(verb, done, noun, says):
    plan, ada = promoting(), a_user("ada", role="operator")

    with held(locks(plan)) as hanging:
        said = verb(plan, actor=ada, reason="Smoke.", now=NOON)

        assert hanging.is_alive()
        assert (
            f"{done}: no more nodes are released. The plan shows the {noun} within seconds, when its lock is free"
        ) in said
        assert why_held(plan) == says
        assert plan_on_page(Plan.objects.get(pk=plan.pk), now=NOON).why == says
        assert [each.verb for each in plan.commands.all()] == ["start"]

    record_pending(now=NOON)

    assert plan.commands.filter(verb__in=("halt", "pause")).count() == 1
    assert AuditEntry.objects.filter(subject=plan.mark, reason="Smoke.").count() == 1
    assert not PendingCommand.objects.exists()


def test_the_stop_of_the_fleet_is_in_force_while_the_row_of_a_plan_is_locked():
    plan, other = promoting(), a_plan(a_fleet("south"))
    in_state(other, "promoting")

    with held(locks(plan)) as hanging:
        fleet_freezes.stop(actor="bea", reason="Smoke.", now=NOON)

        assert hanging.is_alive()
        assert why_held(plan) == why_held(other) == "The fleet is stopped by bea: Smoke."
        assert not plan.events.filter(to="stop").exists()

    record_pending(now=NOON)

    assert [each.events.filter(to="stop").count() for each in (plan, other)] == [1, 1]


def test_the_fleet_stops_while_somebody_hangs_in_lifting_the_last_stop():
    """The index of the one stop in force waits for whoever ends the other: a freeze of the fleet waits for nobody."""
    plan = promoting()
    last = fleet_freezes.stop(actor="bea", reason="Smoke.", now=NOON)

    with held(lambda: Freeze.objects.filter(pk=last.pk).update(ended_at=NOON)) as hanging:
        row = fleet_freezes.stop(actor="ada", reason="Fire.", now=NOON)
        assert hanging.is_alive()

    assert row.is_in_force(now=NOON)
    assert why_held(plan) == "The fleet is frozen by ada: Fire."


def test_a_resume_comes_after_the_halt_that_was_asked_for_before():
    plan, ada = promoting(), a_user("ada", role="operator")
    with held(locks(plan)):
        plan_control.halt(plan, actor=ada, reason="Smoke.", now=NOON)

    plan_control.resume(plan, actor=ada, reason="Only steam.", now=NOON)

    assert list(plan.commands.order_by("pk").values_list("verb", flat=True)) == ["start", "halt", "resume"]
    assert why_held(plan) == ""


def test_a_round_takes_no_turn_while_the_row_is_locked():
    """A worker that waited for it would be missing for the plans of every other cluster."""
    plan = promoting()

    with held(locks(plan)) as hanging:
        assert not plan.take_lease(owner="worker", now=NOON)
        assert hanging.is_alive()


def test_rest_answers_that_a_halt_is_in_force_and_its_record_follows():
    plan, ada = promoting(), a_user("ada", role="operator")
    caller = calling(ada, token=a_token(ada))

    with held(locks(plan)) as hanging:
        answer = caller.post(f"/api/v1/plans/{plan.pk}/halts", {"reason": "Smoke."}, format="json")
        assert hanging.is_alive()

    assert answer.status_code == 202
    assert answer.json()["detail"].startswith(
        "Halted: no more nodes are released. The plan shows the halt within seconds, when its lock is free"
    )
