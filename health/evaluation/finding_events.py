"""Domain events of findings. Findings of rules in shadow mode have none."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from fleet.models import DomainEvent
from health.models import Finding


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
    DomainEvent.write([event_of(each, kind, now=now, **facts) for each in findings if not each.is_shadow])
