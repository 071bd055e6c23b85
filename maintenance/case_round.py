"""Moves open cases after their operations, nodes and findings. It writes rows only, and is safe to repeat."""

from contextlib import suppress
from datetime import datetime

from django.db import transaction

from edges.transition_errors import LostRace
from maintenance.lifecycle import CaseFacts, NextMove, next_move
from maintenance.models import NodeCase
from maintenance.queries import facts_of
from operations.models import Quarantine


def follow_cases(*, now: datetime) -> int:
    """Moves every open case that its facts move, and returns how many. Seven queries when none moves."""
    cases = list(NodeCase.objects.open().select_related("finding").order_by("pk"))
    facts = facts_of(cases)
    moves = [(case, move) for case in cases if (move := next_move(facts[case.pk], now=now))]
    for case, move in moves:
        with suppress(LostRace):  # a person moved it; the next round reads it again
            _follow(case, facts[case.pk], move, now=now)
    return len(moves)


def _follow(case: NodeCase, facts: CaseFacts, move: NextMove, *, now: datetime) -> None:
    with transaction.atomic():
        evidence = {"operation": move.by.number} if move.by else {}
        case.move(move.to, actor=move.actor, reason=move.reason, now=now, evidence=evidence)
        if facts.gone:  # nobody can release a node that is gone, and it takes no place in the ledger
            for row in Quarantine.objects.of_nodes([case.node_uid]).select_related("operation"):
                row.end(now=now, left_reason=facts.gone)
