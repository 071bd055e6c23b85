"""The domain events that changes of plans write."""

from datetime import timedelta

import pytest

from edges.transition_errors import LostRace
from fleet.event_kinds import EVENT_KINDS
from fleet.models import DomainEvent
from rollouts.engine.record import record_answers
from rollouts.gates.base import Answer, GateResult
from rollouts.gates.failure_budget import FAILED, TOLERATED
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from tests.make import NOON, a_plan
from tests.rollouts.rows import a_started_plan, in_state
from wording.reports import EvidenceItem

WANTED = GateResult(Answer.WAIT, title="Not approved yet")
GIVEN = GateResult(Answer.PASS, title="Approved by ada")


@pytest.fixture
def plan(cluster, owner) -> Plan:
    plan = in_state(a_started_plan(cluster, owner), "promoting")
    plan.take_lease(owner="worker-1", now=NOON)
    DomainEvent.objects.all().delete()
    return plan


def answered(plan: Plan, judgement: GateResult, *, after_s: int = 0) -> None:
    now = NOON + timedelta(seconds=after_s)
    record_answers(plan, plan.stages.all(), {0: {"approval": judgement}}, now=now)


def test_a_start_is_one_event_and_going_on_after_a_halt_another(db):
    plan = a_plan()

    for to in (PlanState.HALTED, PlanState.HOLDING):
        plan.move(to, now=NOON, actor="ada", reason="A test.")

    assert list(DomainEvent.objects.values_list("kind", flat=True)) == [
        "plan.started", "plan.halted", "plan.resumed",
    ]  # fmt: skip


@pytest.mark.parametrize("path", [(PlanState.PROMOTED,), (PlanState.ABORTING, PlanState.ABORTED)])
def test_its_end_says_how_it_ended_with_the_facts_of_its_kind(plan, path):
    for to in path:
        plan.move(to, now=NOON, actor="engine", reason="Every stage passed.")

    event = DomainEvent.objects.latest("pk")
    assert (event.kind, event.key, event.facts["state"]) == ("plan.finished", f"plan/{plan.pk}", path[-1])
    assert set(event.facts) == set(EVENT_KINDS[event.kind].facts)


def test_who_comes_second_writes_no_event(plan):
    late = Plan.objects.get(pk=plan.pk)
    plan.move(PlanState.HALTED, now=NOON, actor="ada", reason="A test.")

    with pytest.raises(LostRace):
        late.move(PlanState.HALTED, now=NOON, actor="bob", reason="A test.")

    assert DomainEvent.objects.count() == 1


def test_an_approval_is_wanted_once_and_settled_once(plan):
    for second, judgement in enumerate((WANTED, WANTED, GIVEN, GIVEN)):
        answered(plan, judgement, after_s=second)

    wanted, settled = DomainEvent.objects.all()
    assert (wanted.kind, settled.kind) == ("plan.approval-wanted", "plan.approval-settled")
    assert wanted.key == settled.key == f"plan/{plan.pk}/stage/{plan.stages.get(index=0).pk}"
    assert set(wanted.facts) == set(EVENT_KINDS[wanted.kind].facts)


def test_a_gate_that_is_no_approval_writes_none(plan):
    record_answers(plan, plan.stages.all(), {0: {"driver_version": WANTED}}, now=NOON)

    assert not DomainEvent.objects.exists()


def test_failures_are_used_up_once(plan):
    """Another failed node would halt the plan. At no tolerated failure the halt is the event."""

    def judged(failed: int, tolerated: int) -> GateResult:
        evidence = (EvidenceItem(FAILED, failed), EvidenceItem(TOLERATED, tolerated))
        return GateResult(Answer.WAIT, title=f"{failed} failed", evidence=evidence)

    def record(result: GateResult) -> None:
        record_answers(plan, plan.stages.all(), {0: {"failure_budget": result}}, now=NOON)

    for failed, tolerated in ((0, 0), (1, 2), (2, 2), (2, 2), (1, 2), (2, 2)):
        record(judged(failed, tolerated))

    events = DomainEvent.objects.filter(kind="plan.failures-used")
    assert events.count() == 2
    event = events.first()
    assert event.key == f"plan/{plan.pk}/stage/{plan.stages.get(index=0).pk}/failures"
    assert event.facts.keys() == set(EVENT_KINDS["plan.failures-used"].facts)
