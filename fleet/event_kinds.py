"""The kinds of domain events and the facts that each one carries. Pure.

A change that somebody may want to be notified of writes one event in its own transaction. A cluster that is not seen,
and GPUs that are idle, are findings, so their events are those of findings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class EventPhase(StrEnum):
    """The effect of an event on the conversation about its subject."""

    OPEN = "open"  # somebody may have to act
    WORSE = "worse"  # as OPEN, also to those who know already
    UPDATE = "update"  # only for those who know already
    RESOLVE = "resolve"  # ends the conversation
    RECORD = "record"  # nobody is notified: another event has the same content


@dataclass(frozen=True)
class EventKind:
    key: str
    title: str
    phase: EventPhase
    facts: tuple[str, ...]  # the names of the facts that an event of this kind carries
    # Whether a cause may explain it. Such an event waits until the findings have been listed under their causes.
    may_have_cause: bool = False
    # Whether nobody has to answer: a person has, or nothing is asked. Otherwise a second channel may be used.
    is_answered: bool = False


OF_FINDING = ("finding", "rule", "severity", "subject", "title", "summary")
OF_PLAN = ("plan", "title", "severity", "from", "to", "actor", "reason")
OF_STAGE = (*OF_PLAN, "stage", "stage_name")
OF_OPERATION = ("operation", "severity", "actor", "reason", "state")
OF_CASE = ("case", "severity", "actor", "reason", "state")
# `nodes` are the first names, `node_count` is the number of all.
OF_TRAFFIC = ("plan", "title", "severity", "actor", "reason", "pool", "pool_name", "workload_class", "nodes",
              "node_count")  # fmt: skip

EVENT_KINDS: Mapping[str, EventKind] = {
    kind.key: kind
    for kind in (
        EventKind("finding.opened", "Finding opened", EventPhase.OPEN, OF_FINDING, may_have_cause=True),
        EventKind("finding.uncovered", "Cause resolved, finding not", EventPhase.OPEN, OF_FINDING, may_have_cause=True),
        EventKind("finding.worse", "Finding became more severe", EventPhase.WORSE, (*OF_FINDING, "was")),
        EventKind("finding.better", "Finding became less severe", EventPhase.UPDATE, (*OF_FINDING, "was")),
        EventKind(
            "finding.acknowledged", "Finding acknowledged", EventPhase.UPDATE, (*OF_FINDING, "actor"), is_answered=True
        ),
        EventKind("finding.unassigned", "Finding has no assignee", EventPhase.UPDATE, (*OF_FINDING, "actor")),
        EventKind("finding.muted", "Finding muted", EventPhase.UPDATE, OF_FINDING, is_answered=True),
        EventKind("finding.resolved", "Finding resolved", EventPhase.RESOLVE, (*OF_FINDING, "reason")),
        EventKind("plan.started", "Plan started", EventPhase.OPEN, OF_PLAN, is_answered=True),
        EventKind("plan.approval-wanted", "Stage waits for approval", EventPhase.OPEN, OF_STAGE),
        EventKind("plan.approval-settled", "Stage no longer waits for approval", EventPhase.RESOLVE, OF_STAGE),
        EventKind("plan.failures-used", "Tolerated failures of a stage used up", EventPhase.OPEN, OF_STAGE),
        # The finding "Plan halted" opens with it, can be muted, and is resolved when the plan goes on.
        EventKind("plan.halted", "Plan halted", EventPhase.RECORD, OF_PLAN),
        EventKind("plan.finished", "Plan finished", EventPhase.RESOLVE, (*OF_PLAN, "state")),
        # The findings about what waits for a person open minutes later, and begin no second conversation.
        EventKind("operation.blocked", "Operation waits for a person", EventPhase.OPEN, OF_OPERATION),
        EventKind("operation.continued", "Operation goes on", EventPhase.RESOLVE, OF_OPERATION),
        EventKind("operation.finished", "Operation finished", EventPhase.RESOLVE, OF_OPERATION),
        EventKind("case.blocked", "Case waits for a person", EventPhase.OPEN, OF_CASE),
        EventKind("case.continued", "Case goes on", EventPhase.RESOLVE, OF_CASE),
        EventKind("case.finished", "Case finished", EventPhase.RESOLVE, OF_CASE),
        # Calls of the traffic hook: nobody answers them, and only routes that name traffic have them.
        EventKind("traffic.drain", "Drain traffic from nodes of a pool", EventPhase.OPEN, OF_TRAFFIC, is_answered=True),
        EventKind("traffic.undrain", "Send traffic to nodes of a pool again", EventPhase.RESOLVE, OF_TRAFFIC),
    )
}
