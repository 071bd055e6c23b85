"""Moves open cases after their operations, nodes and findings. It writes rows only, and is safe to repeat."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from django.db import transaction

from edges.transition_errors import LostRace
from maintenance.lifecycle import ENGINE, CaseFacts, CaseState, NextMove, RepairAnswer, next_case_move
from maintenance.models import NodeCase
from maintenance.probation import was_observed
from maintenance.queries import facts_of


def follow_cases(*, now: datetime) -> int:
    """Moves every open case that its facts move, and returns how many. Eight queries when none moves."""
    cases = list(NodeCase.objects.open().select_related("finding", "cluster").order_by("pk"))
    facts = facts_of(cases)
    moved = 0
    for case in cases:
        move = next_case_move(facts[case.pk], now=now)
        ends_probation = move is not None and case.state == CaseState.PROBATION and move.to == CaseState.CLOSED
        if ends_probation and not was_observed(case, now=now):
            move = None  # observation continues
        if move:
            with suppress(LostRace):  # a person moved it; the next round reads it again
                _follow(case, facts[case.pk], move, now=now)
                moved += 1
        elif facts[case.pk].test:
            with suppress(LostRace):
                _take_test(case, facts[case.pk], now=now)
        elif facts[case.pk].fault_seen_at:
            _note_fault(case, facts[case.pk], now=now)
    return moved


def _follow(case: NodeCase, facts: CaseFacts, move: NextMove, *, now: datetime) -> None:
    columns: dict[str, Any] = {}
    if case.state == CaseState.IN_REPAIR and move.to == CaseState.VALIDATING:
        columns["repaired_at"] = now
    if case.state == CaseState.PROBATION and facts.fault_seen_at:
        columns["fault_at"] = facts.fault_seen_at
    if move.by and move.by.kind == "accept-uncordon":  # a person returned it: shown until it is validated
        columns |= {"overridden_at": now, "overridden_by": move.by.actor, "override_reason": move.by.reason}
    with transaction.atomic():
        evidence = {"operation": move.by.number} if move.by else {}
        case.move(move.to, actor=move.actor, reason=move.reason, now=now, evidence=evidence, **columns)
        if facts.repair:
            answer = RepairAnswer.DONE if move.to == CaseState.VALIDATING else RepairAnswer.UNCLEAR
            case.repairs.open().update(ended_at=now, answer=answer)


def _take_test(case: NodeCase, facts: CaseFacts, *, now: datetime) -> None:
    """Records the result of a test Job, once. A pass counts from its begin: a fault during the test is newer.

    :raises LostRace: when the case moved, or has the result already
    """
    test = facts.test
    if test is None:
        return
    result = {"passed": {"passed_at": test.began_at}, "failed": {"failed_at": now}}.get(test.outcome, {})
    if case.passed_at and test.outcome == "passed":
        result = {"passed_at": max(case.passed_at, test.began_at)}
    counts_as = test.outcome
    if test.why_no_validation:
        result, counts_as = {}, "unknown"
    with transaction.atomic():
        if not NodeCase.objects.filter(pk=case.pk, tested_at=case.tested_at).update(tested_at=test.ended_at):
            raise LostRace("The case has the result already.")
        evidence = {"operation": test.operation, "result": test.outcome, "test": test.test}
        what = "Evidence only, passed" if test.why_no_validation else f"Validation {test.outcome}"
        sentence = f"{what} ({test.test}): {test.why_no_validation} {test.sentence}".replace("  ", " ")
        case.take_validation(counts_as, actor=ENGINE, reason=sentence, now=now, evidence=evidence, **result)


def _note_fault(case: NodeCase, facts: CaseFacts, *, now: datetime) -> None:
    """Records a fault of an open case: a validation before it no longer counts."""
    with transaction.atomic():
        same = NodeCase.objects.filter(pk=case.pk, state=case.state, fault_at=case.fault_at)
        if same.update(fault_at=facts.fault_seen_at):
            case.record("fault", actor=ENGINE, reason=facts.fault, now=now)
