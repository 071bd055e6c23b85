"""Domain events of findings. Findings of rules in shadow mode have none."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from fleet.models import DomainEvent, Node
from health.models import Finding

EventOfNode = tuple[DomainEvent, int | None]  # and the key of the node that it is about


def event_of(finding: Finding, kind: str, *, now: datetime, **facts: Any) -> DomainEvent:
    """Returns an unsaved event of the finding as it is now."""
    about = {
        "finding": finding.pk,
        "rule": finding.rule,
        "severity": finding.severity,
        "subject": finding.subject,
        "title": finding.title,
        "summary": finding.summary,
    }
    key = f"finding/{finding.pk}"
    return DomainEvent.of(kind, key, cluster_id=finding.cluster_id, at=now, facts=about | facts)


def write_events(findings: Iterable[Finding], kind: str, *, now: datetime, **facts: Any) -> None:
    """Writes one event for each finding that is not in shadow mode, in a few statements for a thousand."""
    save_events([(event_of(each, kind, now=now, **facts), each.node_id) for each in findings if not each.is_shadow])


def save_events(events: Sequence[EventOfNode]) -> None:
    """Saves events with the names of their nodes. One query for the nodes, if there are any."""
    nodes = {node_id for _, node_id in events if node_id is not None}
    rows = Node.objects.filter(pk__in=nodes).order_by().values_list("pk", "uid", "name") if nodes else ()
    known = {pk: (uid, name) for pk, uid, name in rows}
    for event, node_id in events:
        event.node_uid, event.node_name = known.get(node_id or 0, ("", ""))
    DomainEvent.write([event for event, _ in events])
