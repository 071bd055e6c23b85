"""Automatic steps of cases: drains, repairs, tests and releases nodes that automatic quarantine cordoned (L3).

It starts the operations and repairs that people start, under the same checks. Off by default. Any doubt hands the case
to a person. The first step of doubt is the last automatic one of the case.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import structlog
from django.db import transaction

from edges.transition_errors import LostRace
from fleet.models import Node
from maintenance import commands
from maintenance.automatic import ACTOR
from maintenance.automatic_cases import DEADLINE_H, AutomaticCase, automatic_case
from maintenance.lifecycle import CaseState
from maintenance.models import NodeCase
from maintenance.queries import facts_of, wanted_test
from maintenance.refusals import CaseRefused
from maintenance.step_choice import AutomaticStep
from maintenance.triggers import VERSION
from operations import commands as operations
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from operations.refusals import OperationRefused
from wording.instants import to_the_minute

log = structlog.get_logger()
MOST_A_ROUND = 100  # cases in random order, so that waiting cases do not block others


def run_automatic_steps(*, now: datetime) -> None:
    """Starts the next step of every case that has automatic steps. One query without one."""
    rows = NodeCase.objects.open().filter(automatic_at__isnull=False, handed_over_at=None)
    rows = rows.filter(is_new=False).exclude(state=CaseState.PROBATION)  # its steps have ended
    cases = list(rows.select_related("cluster", "finding").order_by("?")[:MOST_A_ROUND])
    facts = facts_of(cases)
    for case in cases:
        its = automatic_case(case, facts[case.pk], now=now)
        try:
            _carry_out(its, now=now)
        except LostRace as lost:  # a person changed the case or the switches; the next round reads them again
            log.info("an automatic step did not start", case=case.pk, reason=str(lost))


def _carry_out(its: AutomaticCase, *, now: datetime) -> None:
    """:raises LostRace: when somebody changed the case, the mode, a switch or the breaker"""
    if its.choice.step == AutomaticStep.WAIT:
        return
    if its.choice.step == AutomaticStep.HAND_OVER:
        _hand_over(its, now=now)
        return
    try:
        _start(its, now=now)
    except (CaseRefused, OperationRefused) as refusal:
        refused = NodeCase.objects.get(pk=its.case.pk)
        refused.hand_over("", actor=ACTOR, reason=f"The {its.choice.step} was refused. {refusal}", now=now)


def _hand_over(its: AutomaticCase, *, now: datetime) -> None:
    """:raises LostRace: also when the drain that it cancels has begun or ended"""
    choice = its.choice
    with transaction.atomic():
        its.case.hand_over(choice.to, actor=ACTOR, reason=choice.reason, now=now)
        if not choice.is_cancelling:
            return
        drains = OperationNode.objects.of_kinds("drain").filter(node_uid=its.case.node_uid, operation__asked_by=ACTOR)
        waiting = drains.filter(state=NodeProgress.PENDING).select_related("operation").first()
        if waiting is None or not waiting.operation.is_in_progress:
            raise LostRace("The drain began or ended at the same time.")
        operations.cancel(waiting.operation, actor=ACTOR, reason=choice.reason, unless_begun=True, now=now)


def _start(its: AutomaticCase, *, now: datetime) -> None:
    """Starts the step with its reason and evidence. All of it or nothing.

    :raises LostRace: when somebody changed the case, the mode, a switch or the breaker
    :raises CaseRefused: or OperationRefused: when a person could not do it either
    """
    case, row, step = its.case, its.row, its.choice.step
    if row is None:
        raise LostRace("The pool of the case was deleted.")
    by, since = its.switch(step)
    when = to_the_minute(since) if since else "an unknown time"
    reason = f"{its.rule}. {its.choice.reason} Switched on by {by}, {when}."
    evidence = {
        "rule": its.decision.trigger if its.decision else "", "version": VERSION, "finding": case.finding_id,
        "switch": {"by": by, "since": since}, "breaker": row.breaker, "kind": its.choice.kind, "pool": row.pool_id,
    }  # fmt: skip
    with transaction.atomic():
        row.change()
        same = NodeCase.objects.filter(pk=case.pk, state=case.state, automatic_at=case.automatic_at)
        if not same.filter(handed_over_at=None).update(automatic_at=now):
            raise LostRace("The case moved, or a person took it over.")
        case.record(f"automatic-{step}", actor=ACTOR, reason=reason, now=now, evidence=evidence)
        if step == AutomaticStep.REPAIR:
            kind = its.choice.kind or ""
            commands.ask_repair(
                case, kind=kind, by=row.repair_through, deadline_h=DEADLINE_H, actor=ACTOR, reason=reason, now=now
            )
            return
        node = Node.objects.filter(cluster=case.cluster, uid=case.node_uid).first()
        if node is None:
            raise LostRace("The node is not seen in its cluster.")
        options: dict[str, Any] = {"test": wanted_test(case)} if step == AutomaticStep.TEST else {}
        operations.start(
            case.cluster, step.value, [node], actor=ACTOR, reason=reason, options=options, now=now,
            key=f"automatic-{case.pk}-{step}-{row.epoch}",
        )  # fmt: skip
