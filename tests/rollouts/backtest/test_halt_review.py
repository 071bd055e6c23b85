"""After a halt its suspects and the gate that the plan lacked are in its history, its finding and its evidence file."""

import json

import pytest

from rollouts.backtest.halt_review import AGAIN, review_halt
from rollouts.evidence.export import evidence_of
from rollouts.evidence.verification import verify
from rollouts.findings.plan_findings import halted_plans
from rollouts.models import Target
from rollouts.models.plan_event import MISSED_GATE, SUSPECTS
from tests.make import NOON
from tests.rollouts.backtest.story import HALTED, a_halted_plan, an_xid

pytestmark = [pytest.mark.django_db]


def test_the_gate_is_written_once_and_named_by_the_finding():
    plan = a_halted_plan()
    an_xid(plan, severity="warning")

    for _ in range(2):
        review_halt(plan.pk, now=NOON + HALTED)

    (note,) = plan.events.filter(to=MISSED_GATE)
    ((_, problem),) = halted_plans(plan.cluster, now=NOON + HALTED)
    assert note.reason.startswith(
        "Xids would have failed in Canary at 2026-11-21 12:21:00 UTC. GPU 3 of node-0: Xid 79."
    )
    assert note.reason in [item.value for item in problem.evidence]


def test_a_plan_that_is_not_halted_has_no_review():
    plan = a_halted_plan()
    plan.move("promoting", now=NOON + HALTED, actor="ada", reason="Again.")

    review_halt(plan.pk, now=NOON + HALTED)

    assert not plan.events.filter(to=MISSED_GATE).exists()


def test_suspects_are_written_when_they_differ_and_named_by_finding_and_evidence_file():
    plan = a_halted_plan()
    for name, kernel in (("node-0", "6.8"), ("node-1", "6.8"), ("node-2", "5.15")):
        Target.objects.filter(stage__plan=plan, node_name=name).update(facts={"kernel": kernel})

    for _ in range(2):
        review_halt(plan.pk, now=NOON + HALTED)

    (first,) = plan.events.filter(to=SUSPECTS)
    assert "kernel 5.15: on 1 of 1 failed node" in first.reason
    another = Target.objects.exclude(state="failed").filter(stage__plan=plan, state="changed").first()
    another.move("failed", now=NOON + HALTED, actor="engine", reason="Its driver does not load.")
    review_halt(plan.pk, now=NOON + HALTED + AGAIN / 2)
    assert plan.events.filter(to=SUSPECTS).count() == 1
    review_halt(plan.pk, now=NOON + HALTED + AGAIN)

    newest = plan.events.filter(to=SUSPECTS).first()
    ((_, problem),) = halted_plans(plan.cluster, now=NOON + HALTED)
    assert newest.pk > first.pk
    assert newest.reason in [item.value for item in problem.evidence]
    assert [each["text"] for each in json.loads(evidence_of(plan))["halts"]][::2] == [first.reason, newest.reason]
    assert not [flaw for flaw in verify(evidence_of(plan)).flaws if "halts" in flaw.field]
