"""After a halt the gate that the plan lacked is in its history once, and in its finding."""

import pytest

from rollouts.backtest.halt_review import record_missed_gate
from rollouts.findings.plan_findings import halted_plans
from rollouts.models.plan_event import MISSED_GATE
from tests.make import NOON
from tests.rollouts.backtest.story import HALTED, a_halted_plan, an_xid

pytestmark = [pytest.mark.django_db]


def test_the_gate_is_written_once_and_named_by_the_finding():
    plan = a_halted_plan()
    an_xid(plan, severity="warning")

    for _ in range(2):
        record_missed_gate(plan.pk, now=NOON + HALTED)

    (note,) = plan.events.filter(to=MISSED_GATE)
    ((_, problem),) = halted_plans(plan.cluster, now=NOON + HALTED)
    assert note.reason.startswith(
        "Xids would have failed in Canary at 2026-11-21 12:21:00 UTC. GPU 3 of node-0: Xid 79."
    )
    assert note.reason in [item.value for item in problem.evidence]


def test_a_plan_that_is_not_halted_has_no_review():
    plan = a_halted_plan()
    plan.move("promoting", now=NOON + HALTED, actor="ada", reason="Again.")

    record_missed_gate(plan.pk, now=NOON + HALTED)

    assert not plan.events.filter(to=MISSED_GATE).exists()
