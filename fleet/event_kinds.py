"""The kinds of domain events, the facts that each one carries, and its line on pages. Pure.

A change that somebody may want to be notified of writes one event in its own transaction. A cluster that is not seen,
and GPUs that are idle, are findings, so their events are those of findings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class EventPhase(StrEnum):
    """The effect of an event on the conversation about its subject."""

    OPEN = "open"  # somebody may have to act
    WORSE = "worse"  # like OPEN, also for those who were notified already
    UPDATE = "update"  # only for those who were notified already
    RESOLVE = "resolve"  # ends the conversation
    RECORD = "record"  # nobody is notified: another event has the same content


@dataclass(frozen=True)
class EventKind:
    key: str
    title: str
    phase: EventPhase
    facts: tuple[str, ...]  # the names of the facts that an event of this kind carries
    line: str  # the sentence on timelines, with facts in braces
    line_with_reason: str = ""  # the same of an event with a reason; blank: no other
    glyph: str = ""  # blank: that of its phase and severity
    # Whether a cause may explain it. Such an event waits until the findings have been listed under their causes.
    may_have_cause: bool = False
    # Whether nobody has to answer: a person has, or nothing is asked. Otherwise a second channel may be used.
    is_answered: bool = False


OF_FINDING = ("finding", "rule", "severity", "subject", "title", "summary")
OF_ACT = (*OF_FINDING, "actor", "reason")
OF_PLAN = ("plan", "title", "severity", "from", "to", "actor", "reason")
OF_STAGE = (*OF_PLAN, "stage", "stage_name")
OF_OPERATION = ("operation", "title", "severity", "actor", "reason", "state")
OF_REQUEST = (*OF_OPERATION, "jobs")  # by name: owner, asked_at, until, then
OF_CASE = ("case", "severity", "actor", "reason", "state", "what")
# `nodes` are the first names, `node_count` is the number of all.
OF_TRAFFIC = ("plan", "title", "severity", "actor", "reason", "pool", "pool_name", "workload_class", "nodes",
              "node_count")  # fmt: skip
OPENED, OPENED_MUTED = "finding.opened", "finding.opened-muted"
LINE_OF_CASE = "Case {case}: {what}. {reason}"

EVENT_KINDS: Mapping[str, EventKind] = {
    kind.key: kind
    for kind in (
        EventKind(OPENED, "Finding opened", EventPhase.OPEN, OF_FINDING, "{title}. {summary}", may_have_cause=True),
        # Nobody is notified of it until its mute ends, and it opens.
        EventKind(OPENED_MUTED, "Finding opened, muted", EventPhase.RECORD, OF_FINDING, "Muted: {title}. {summary}"),
        EventKind(
            "finding.uncovered", "Cause resolved, finding not", EventPhase.OPEN, OF_FINDING,
            "Its cause is resolved, and it persists: {title}", may_have_cause=True,
        ),
        EventKind(
            "finding.worse", "Finding became more severe", EventPhase.WORSE, (*OF_FINDING, "was"),
            "Now {severity}, before {was}: {title}",
        ),
        EventKind(
            "finding.better", "Finding became less severe", EventPhase.UPDATE, (*OF_FINDING, "was"),
            "Only {severity} now, before {was}: {title}",
        ),
        EventKind(
            "finding.acknowledged", "Finding acknowledged", EventPhase.UPDATE, OF_ACT,
            "Acknowledged: {title}. {reason}", is_answered=True,
        ),
        EventKind(
            "finding.unassigned", "Finding has no assignee", EventPhase.UPDATE, OF_ACT, "Unassigned: {title}. {reason}"
        ),
        EventKind(
            "finding.muted", "Finding muted", EventPhase.UPDATE, OF_ACT, "Muted: {title}. {reason}", is_answered=True
        ),
        # Acts that notify nobody.
        EventKind(
            "finding.assigned", "Finding assigned", EventPhase.RECORD, (*OF_ACT, "assignee"),
            "Assigned to {assignee}: {title}. {reason}",
        ),
        EventKind(
            "finding.assignee-removed", "Assignee of an open finding removed", EventPhase.RECORD, OF_ACT,
            "Unassigned: {title}. {reason}",
        ),
        EventKind(
            "finding.accepted", "Steps of a finding accepted", EventPhase.RECORD, OF_ACT,
            "Steps accepted: {title}. {reason}",
        ),
        EventKind(
            "finding.dismissed", "Steps of a finding dismissed", EventPhase.RECORD, OF_ACT,
            "Steps dismissed: {title}. {reason}",
        ),
        EventKind(
            "finding.resolved", "Finding resolved", EventPhase.RESOLVE, (*OF_FINDING, "reason"), "Resolved: {title}",
            line_with_reason="No longer reported, as {reason}: {title}",
        ),
        EventKind(
            "plan.started", "Plan started", EventPhase.OPEN, OF_PLAN, "{title}: started. {reason}", is_answered=True
        ),
        EventKind(
            "plan.approval-wanted", "Stage waits for approval", EventPhase.OPEN, OF_STAGE,
            "{title}: {stage_name} waits for approval.",
        ),
        EventKind(
            "plan.approval-settled", "Stage no longer waits for approval", EventPhase.RESOLVE, OF_STAGE,
            "{title}: {stage_name} no longer waits for approval.",
        ),
        EventKind(
            "plan.failures-used", "Tolerated failures of a stage used up", EventPhase.OPEN, OF_STAGE,
            "{title}: {stage_name} has used up its tolerated failures.",
        ),
        # The finding "Plan halted" opens with it, can be muted, and is resolved when the plan goes on.
        EventKind(
            "plan.halted", "Plan halted", EventPhase.RECORD, OF_PLAN, "{title}: halted. {reason}", glyph="bad"
        ),
        EventKind("plan.resumed", "Plan resumed", EventPhase.RECORD, OF_PLAN, "{title}: resumed. {reason}"),
        EventKind(
            "plan.rolling-back", "Plan rolls back", EventPhase.RECORD, OF_PLAN, "{title}: rolls back. {reason}",
            glyph="warn",
        ),
        EventKind(
            "plan.aborting", "Plan is aborted", EventPhase.RECORD, OF_PLAN, "{title}: is aborted. {reason}",
            glyph="warn",
        ),
        EventKind(
            "plan.finished", "Plan finished", EventPhase.RESOLVE, (*OF_PLAN, "state"), "{title}: {state}. {reason}"
        ),
        EventKind(
            "operation.started", "Operation started", EventPhase.RECORD, OF_OPERATION, "{title}: started. {reason}"
        ),
        # Findings about the wait for a person open minutes later, and begin no second conversation.
        EventKind(
            "operation.blocked", "Operation waits for a person", EventPhase.OPEN, OF_OPERATION,
            "{title}: waits for a person. {reason}",
        ),
        # An owner acts in the cluster, not here. Each request of a drain is sent.
        EventKind(
            "operation.owners-asked", "Owners asked to suspend their jobs", EventPhase.WORSE, OF_REQUEST,
            "{title}: asks owners. {reason}", glyph="waiting",
        ),
        EventKind(
            "operation.pods-block", "Owners asked about pods that block a drain", EventPhase.WORSE, OF_REQUEST,
            "{title}: asks owners. {reason}", glyph="waiting",
        ),
        EventKind(
            "operation.paused", "Operation paused by a person", EventPhase.RECORD, OF_OPERATION,
            "{title}: paused. {reason}",
        ),
        EventKind(
            "operation.continued", "Operation goes on", EventPhase.RESOLVE, OF_OPERATION, "{title}: goes on. {reason}"
        ),
        EventKind(
            "operation.finished", "Operation finished", EventPhase.RESOLVE, OF_OPERATION, "{title}: {state}. {reason}"
        ),
        # Each entry of a case is one event.
        EventKind("case.opened", "Case opened", EventPhase.RECORD, OF_CASE, LINE_OF_CASE),
        EventKind("case.changed", "Case changed", EventPhase.RECORD, OF_CASE, LINE_OF_CASE),
        EventKind("case.blocked", "Case waits for a person", EventPhase.OPEN, OF_CASE, LINE_OF_CASE),
        EventKind("case.continued", "Case goes on", EventPhase.RESOLVE, OF_CASE, LINE_OF_CASE),
        EventKind("case.finished", "Case finished", EventPhase.RESOLVE, OF_CASE, LINE_OF_CASE),
        # Calls of the traffic hook: nobody answers them, and only routes that name traffic have them.
        EventKind(
            "traffic.drain", "Drain traffic from nodes of a pool", EventPhase.OPEN, OF_TRAFFIC,
            "{title}: traffic is to leave {node_count} nodes of pool {pool_name}.", is_answered=True, glyph="part",
        ),
        EventKind(
            "traffic.undrain", "Send traffic to nodes of a pool again", EventPhase.RESOLVE, OF_TRAFFIC,
            "{title}: traffic may return to {node_count} nodes of pool {pool_name}.",
        ),
    )
}  # fmt: skip
FAMILIES: Mapping[str, str] = {
    "finding": "Findings", "plan": "Plans", "operation": "Operations", "case": "Cases", "traffic": "Traffic hook",
}  # fmt: skip
GLYPHS = {"critical": "bad", "warning": "warn"}


class _Facts(dict[str, Any]):
    """The facts of an event. A fact that an earlier version did not write is blank."""

    def __missing__(self, name: str) -> str:
        return ""


def line_of(kind: EventKind, facts: Mapping[str, Any]) -> str:
    """Returns the sentence about an event."""
    is_reasoned = bool(kind.line_with_reason and facts.get("reason"))
    return (kind.line_with_reason if is_reasoned else kind.line).format_map(_Facts(facts)).rstrip()


def glyph_of(kind: EventKind, facts: Mapping[str, Any]) -> str:
    if kind.glyph:
        return kind.glyph
    if kind.phase in (EventPhase.OPEN, EventPhase.WORSE):
        return GLYPHS.get(facts.get("severity", ""), "part")
    is_good = facts.get("state") == "promoted" or (kind.key == "finding.resolved" and not facts.get("reason"))
    return "ok" if is_good else "part"
