"""The text of a message: problem, object, start, impact and next steps."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from fleet.models import DomainEvent
from health.impact import Impact
from health.models import Finding
from maintenance.lifecycle import NEXT, CaseState
from maintenance.models import NodeCase
from notifications.channels.base import Notification
from operations.lifecycle import NodeProgress
from operations.models import Operation
from operations.models.operation import BLOCKED, OWNERS_ASKED, PODS_BLOCK
from rollouts.models import Plan
from wording.lists import names
from wording.numbers import count

VALUES, CAUSES = 6, 2  # of a finding, in its message
UNTOUCHED = (
    "Quarterdeck repairs nothing by itself, but a gate may halt a plan. The finding is resolved when the fault ends."
)
NEXT_OF_RULE = {"plan-halted": "No further node is released until a person decides."}
NEXT_OF_PLAN = {
    "plan.started": "Its stages go on by themselves until one waits for approval, or a gate halts the plan.",
    "plan.approval-wanted": "No node of the stage is released until it is approved.",
    "plan.failures-used": "The plan continues by itself.",
}
NEXT_OF_OPERATION = {
    BLOCKED: "It waits, and its nodes stay as they are.",
    OWNERS_ASKED: "A drain evicts what is left at that time.",
    PODS_BLOCK: "Each eviction is tried again. At that time the drain fails; nothing is forced.",
}
STEPS_OF_OPERATION = {
    BLOCKED: ("Open the operation, then approve, resume, retry or cancel it.",),
    OWNERS_ASKED: ("Set spec.suspend of a Job or JobSet. End other work.",),
    PODS_BLOCK: (
        "If a budget refuses the eviction: start another replica elsewhere, or end the pod.",
        "If a pod does not end: check its finalizers and its volumes.",
    ),
}
STEPS_OF_PLAN = {
    "plan.approval-wanted": ("Open the stage, look at its bundle, and approve or reject it.",),
    "plan.failures-used": (
        "Read the cause of each failed node. One more failed node halts the plan.",
        "Pause the plan, retry the nodes, or let it continue.",
    ),
}


def message_of_finding(
    event: DomainEvent,
    finding: Finding,
    *,
    impact: Impact | None,
    pools: Sequence[str],
    case: NodeCase | None = None,
    quarantining: Sequence[str] = (),
) -> Notification:
    """Returns the message. The finding needs its cluster and node loaded.

    `case` is the open one of its node, and `quarantining` are pools whose automatic quarantine may act on it.
    """
    node = finding.node.name if finding.node else ""
    is_over = event.kind == "finding.resolved"
    labels = {"rule": finding.rule, "severity": finding.severity, "node": node, "pool": pools[0] if pools else ""}
    return Notification(
        key=key_of(event),
        kind=event.kind,
        title=f"{finding.cluster.name}: {finding.title}",
        severity=finding.severity,
        at=event.at,
        since=finding.since,
        cluster=finding.cluster.name,
        subject=finding.subject,
        summary=finding.summary,
        impact=impact.sentence if impact and not is_over else "",
        happens_next="" if is_over else _next_of_finding(finding, case, quarantining),
        details=() if is_over else _details(finding),
        steps=() if is_over else tuple(finding.steps),
        link=link_to(f"{reverse('findings')}?finding={finding.pk}"),
        happened=_happened(event.kind, event.facts),
        is_acknowledged=finding.acknowledged_at is not None,
        labels={name: value for name, value in labels.items() if value},
    )


def _details(finding: Finding) -> tuple[str, ...]:
    values = "; ".join(f"{item.label}: {item.text}" for item in finding.evidence_items[:VALUES])
    causes = [f"Probable cause: {cause}" for cause in finding.causes[:CAUSES]]
    return tuple(filter(None, (values, *causes)))


def _next_of_finding(finding: Finding, case: NodeCase | None, quarantining: Sequence[str]) -> str:
    """Returns what happens to the finding without a person."""
    if case is not None:
        return f"Case {case.pk}: {NEXT[CaseState(case.state)]}"
    if quarantining:
        return f"Automatic quarantine of {names(quarantining)} may quarantine the node."
    return NEXT_OF_RULE.get(finding.rule, UNTOUCHED)


def _message_of(event: DomainEvent, page: str, row: Plan | Operation | NodeCase, **told: Any) -> Notification:
    """Returns the message about a row with a page of this name. Its conversation begins with the event."""
    return Notification(
        key=key_of(event),
        kind=event.kind,
        severity=event.facts["severity"],
        at=event.at,
        since=event.at,
        cluster=row.cluster.name,
        subject=f"{page} {row.pk}",
        link=link_to(reverse(page, args=[row.pk])),
        **told,
    )


def message_of_plan(event: DomainEvent, plan: Plan) -> Notification:
    """Returns the message. The plan needs its cluster loaded."""
    facts = event.facts
    what = {
        "plan.started": f"was started by {facts['actor']}",
        "plan.approval-wanted": f"waits for approval of {facts.get('stage_name')}",
        "plan.approval-settled": f"waits no longer for approval of {facts.get('stage_name')}",
        "plan.failures-used": f"has used up the tolerated failures of {facts.get('stage_name')}",
        "plan.finished": f"is finished: {facts.get('state')}",
    }[event.kind]
    return _message_of(
        event,
        "plan",
        plan,
        title=f"{plan.cluster.name}: plan #{plan.pk} “{plan.title}” {what}",
        summary=f"{plan.component} {plan.from_version} → {plan.to_version}. {facts['reason']}".strip(),
        happens_next=NEXT_OF_PLAN.get(event.kind, ""),
        steps=STEPS_OF_PLAN.get(event.kind, ()),
        happened=_happened(event.kind, facts),
        labels={"kind": "plan", "severity": facts["severity"]},
    )


def _course_of(event: DomainEvent) -> str:
    """Returns what an operation or case does, as in "goes on"."""
    course = event.kind.partition(".")[2]
    said = {
        "blocked": "waits for a person",
        "continued": "goes on",
        "owners-asked": "asks the owners of its jobs",
        "pods-block": "asks the owners of pods that block it",
    }
    return said.get(course) or f"is {event.facts['state']}"


def message_of_operation(event: DomainEvent, operation: Operation) -> Notification:
    """Returns the message. The operation needs its cluster loaded. Two queries."""
    facts = event.facts
    failed = operation.nodes.filter(state=NodeProgress.FAILED).count()
    return _message_of(
        event,
        "operation",
        operation,
        title=f"{operation.cluster.name}: {operation.summary} {_course_of(event)}",
        summary=f"{facts['reason']} Asked by {operation.asked_by}: {operation.reason}".strip(),
        happens_next=NEXT_OF_OPERATION.get(event.kind, ""),
        details=(f"Failed nodes: {failed}",) if failed else (),
        steps=STEPS_OF_OPERATION.get(event.kind, ()),
        labels={"kind": "operation", "severity": facts["severity"]},
    )


def message_of_case(event: DomainEvent, case: NodeCase) -> Notification:
    """Returns the message. The case needs its cluster loaded."""
    facts = event.facts
    is_blocked = event.kind == "case.blocked"
    return _message_of(
        event,
        "case",
        case,
        title=f"{case.cluster.name}: case of {case.node_name} {_course_of(event)}",
        summary=facts["reason"],
        happens_next="It waits, and the node stays as it is." if is_blocked else "",
        details=(f"Reason of the case: {case.reason}",) if is_blocked else (),
        steps=(NEXT[CaseState(facts["state"])],) if is_blocked else (),
        labels={"kind": "case", "severity": facts["severity"], "node": case.node_name},
    )


def message_of_traffic(event: DomainEvent, plan: Plan) -> Notification:
    """Returns the call of the traffic hook, with the names of the nodes as details. The plan needs its cluster."""
    facts = event.facts
    action = event.kind.removeprefix("traffic.")
    where = f"{plan.cluster.name}/{facts['pool_name']}"
    return _message_of(
        event,
        "plan",
        plan,
        title=f"{where}: {action} traffic, {count(facts['node_count'], 'node')}",
        summary=facts["reason"],
        details=tuple(facts["nodes"]),
        labels={"kind": "traffic", "action": action, "pool": where, "plan": str(plan.pk)},
    )


def message_of_test(channel: str, *, by: str, now: datetime) -> Notification:
    """Returns the message of the button Test."""
    return Notification(
        key=f"quarterdeck/{settings.INSTANCE}/test/{channel}",
        kind="test",
        title=f"Test of channel {channel} by {by}",
        severity="note",
        at=now,
        since=now,
        summary="Quarterdeck can reach this channel. Nothing is wrong.",
        link=link_to(reverse("notifications")),
    )


def key_of(event: DomainEvent) -> str:
    """Returns the key of the conversation for receivers: stable, and different in every installation."""
    return f"quarterdeck/{settings.INSTANCE}/{event.key}"


def link_to(path: str) -> str:
    """Returns the absolute address of a page; empty if the address of this installation is not configured."""
    return f"{settings.PUBLIC_URL.rstrip('/')}{path}" if settings.PUBLIC_URL else ""


def _happened(kind: str, facts: Mapping[str, Any]) -> str:
    match kind:
        case "finding.worse":
            return f"It became {facts['severity']}; it was {facts['was']}."
        case "finding.better":
            return f"It is only {facts['severity']} now; it was {facts['was']}."
        case "finding.acknowledged":
            return f"Acknowledged by {facts['actor']}."
        case "finding.unassigned":
            return f"{facts['actor']} unassigned it: nobody owns it."
        case "finding.muted":
            return "Muted: no further message about it until the mute ends."
        case "finding.uncovered":
            return "Its cause is resolved, and it persists."
        case "finding.resolved":
            return f"Closed: {facts['reason']}." if facts["reason"] else "Resolved."
    return ""
