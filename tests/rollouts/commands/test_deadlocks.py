"""A person and a round write the same rows: nobody is refused because both wait for each other."""

from datetime import time
from threading import Event, Thread

import pytest
from django.db import connection, transaction

from demo.visitor import wait_until
from fleet.pools.approval_rules import set_approval
from fleet.pools.changes import create_pool
from operations.ledger.disruptions import record_disruptions
from rollouts.commands import plan_control
from rollouts.commands.maintenance_windows import make_window
from rollouts.models import MaintenanceWindow, Plan, Stage, Target
from tests.locks import one_waits, while_it_is_written
from tests.make import NOON, a_node, a_plan, a_user
from tests.patience import PATIENCE_S
from tests.rollouts.rows import in_state

pytestmark = pytest.mark.sqlite


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", [plan_control.roll_back, plan_control.abort])
def test_a_round_that_has_the_plan_and_wants_its_stages_next(verb):
    plan, ada = a_plan(), a_user("ada", role="operator")
    in_state(plan, "promoting")
    has_the_plan, refusals = Event(), []

    def person() -> None:
        has_the_plan.wait(PATIENCE_S)
        try:
            verb(Plan.objects.get(pk=plan.pk), actor=ada, reason="x", now=NOON)
        except Exception as error:  # noqa: BLE001 - what it was is what the test asks
            refusals.append(error)
        finally:
            connection.close()

    other = Thread(target=person)
    other.start()
    with transaction.atomic():
        plan.keep_lease(now=NOON)
        has_the_plan.set()
        if connection.vendor == "postgresql":  # SQLite has one writer: the person waits for its transaction
            wait_until(one_waits, what="a person who waits", timeout_s=PATIENCE_S)
        Stage.objects.filter(plan=plan).update(state_since=NOON)
    other.join()

    assert refusals == []


@pytest.mark.django_db(transaction=True)
def test_two_nodes_are_taken_out_of_one_plan_at_the_same_moment():
    plan, ada = a_plan(), a_user("ada", role="operator")
    first, second = Target.objects.filter(stage__plan=plan).order_by("-pk")[:2]

    def take_out(target: Target) -> None:
        plan_control.exclude(Target.objects.get(pk=target.pk), actor=ada, reason="Its fan.", now=NOON)

    assert while_it_is_written(lambda: take_out(first), lambda: take_out(second)) == []
    assert plan.commands.filter(verb="exclude").count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["cluster", "pool"])
def test_a_wave_is_released_while_somebody_says_who_has_to_be_asked(verb):
    """Its intent has the plan, and wants the row of the cluster last."""
    plan = a_plan()
    in_state(plan, "promoting")
    target = Target.objects.filter(stage__plan=plan).first()

    def say() -> None:
        if verb == "cluster":
            set_approval(plan.cluster, "none", actor="ada", reason="A lab.", now=NOON)
        else:
            create_pool(cluster=plan.cluster, actor="ada", now=NOON, name="late", selector="zone=late")

    refusals = while_it_is_written(
        lambda: plan.keep_lease(now=NOON),
        say,
        lambda: record_disruptions(
            plan.cluster_id, {target.node_uid: target.node_name}, by=plan, is_rollback=False, now=NOON
        ),
    )

    assert refusals == []


@pytest.mark.django_db(transaction=True)
def test_a_worker_writes_a_cluster_while_somebody_makes_a_window_of_it():
    """Its rows name the cluster, by its key: it does not wait for a person, who waits for whoever lets nodes go."""
    plan = a_plan()
    night = {"rule": "FREQ=DAILY", "first_day": NOON.date(), "opens_at": time(2), "zone": "UTC", "duration_s": 7200}
    window = MaintenanceWindow(cluster=plan.cluster, by="ada", reason="At night.", at=NOON, **night)
    written = Event()

    def write() -> None:
        try:
            a_node(plan.cluster, "late")
            written.set()
        finally:
            connection.close()

    worker = Thread(target=write)
    with transaction.atomic():
        make_window(window, now=NOON)
        if connection.vendor == "postgresql":  # SQLite has one writer
            worker.start()
            assert written.wait(PATIENCE_S)
    if worker.ident is not None:
        worker.join()
