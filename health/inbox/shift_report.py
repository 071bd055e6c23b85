"""The handover between shifts: open cases, current findings, and those resolved lately."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from fleet.queries import ClusterRow
from health.impact import Impact
from health.inbox.last_seen import LastSeen, unconfirmed_findings
from health.inbox.queries import FindingCounts, as_seen_by, counts_of, impacts_of, titles
from health.inbox.source_trials import Age, ages_of
from health.models import Finding, RuleShadow
from health.models.finding import WORST_FIRST
from people.models import User

HOURS = (8, 12, 24, 72, 168)  # length of the reported period
USUAL = 8
MOST = 100  # of a section; the rest is counted


@dataclass(frozen=True)
class ReportedFinding:
    finding: Finding
    title: str  # of its rule
    impact: Impact | None  # None: it is about no node, or over
    last_seen: LastSeen | None  # None: it is seen now whether it is still so, or it is over


@dataclass(frozen=True)
class ReportSection:
    lines: Sequence[ReportedFinding]
    left_out: int


@dataclass(frozen=True)
class ReportedCase:
    """An open case of a node."""

    number: int
    path: str  # of its page
    node: str
    cluster: str
    owner: str  # who does the next step
    state: str
    state_since: datetime
    opened_at: datetime
    reason: str  # of its opening
    next_step: str  # what it waits for, and what follows


@dataclass(frozen=True)
class CaseSection:
    lines: Sequence[ReportedCase] = ()
    left_out: int = 0


# Each returns the open cases that a person sees. Apps above register them here, since they import this app.
OPEN_CASES: list[Callable[[User], CaseSection]] = []


@dataclass(frozen=True)
class Handover:
    at: datetime
    hours: int  # length of the reported period, back from `at`
    counts: FindingCounts  # unresolved findings
    cases: CaseSection  # the longest in their state first
    unresolved: ReportSection  # the worst first
    resolved: ReportSection  # the newest first
    in_shadow_mode: int  # rules in shadow mode; their findings are not counted here
    ages: Sequence[Age]  # of each visible cluster, and of its GPU data sources


def handover_of(user: User, clusters: Sequence[ClusterRow], *, hours: int, now: datetime) -> Handover:
    """Returns the handover of everything that the user sees, counted as the inbox does. Empty `clusters` means all."""
    last_seen_at = {line.cluster.pk: line.freshness.last_seen_at for line in clusters if not line.freshness.is_fresh}
    own = Finding.objects.without_visible_cause(user).notified().select_related("cluster", "node", "parent")
    over = own.filter(opened_at__isnull=False, resolved_at__gte=now - timedelta(hours=hours))
    unresolved, left_out = _first_rows(own.unresolved().order_by(WORST_FIRST, "since", "pk"))
    resolved, resolved_left_out = _first_rows(over.order_by("-resolved_at", "-pk"))
    as_seen_by(user, [*unresolved, *resolved])
    impacts = impacts_of(unresolved, now=now)
    unseen = unconfirmed_findings(unresolved, last_seen_at=last_seen_at, now=now)
    return Handover(
        at=now,
        hours=hours,
        counts=counts_of(user),
        cases=_open_cases(user),
        unresolved=ReportSection(_reported_findings(unresolved, impacts, unseen), left_out),
        resolved=ReportSection(_reported_findings(resolved, {}, {}), resolved_left_out),
        in_shadow_mode=RuleShadow.objects.in_force().count(),
        ages=ages_of(user, clusters, now=now),
    )


def _open_cases(user: User) -> CaseSection:
    sections = [load(user) for load in OPEN_CASES]
    lines = [line for section in sections for line in section.lines]
    return CaseSection(lines, sum(section.left_out for section in sections))


def _first_rows(rows: QuerySet[Finding]) -> tuple[list[Finding], int]:
    found = list(rows[: MOST + 1])
    return (found, 0) if len(found) <= MOST else (found[:MOST], rows.count() - MOST)


def _reported_findings(
    findings: Collection[Finding], impacts: Mapping[int, Impact], unseen: Mapping[int, LastSeen]
) -> Sequence[ReportedFinding]:
    named = titles()
    return [
        ReportedFinding(one, named.get(one.rule, one.rule), impacts.get(one.pk), unseen.get(one.pk)) for one in findings
    ]
