"""What findings add to the timeline of a node, and which were open at a moment."""

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db.models import Q
from django.db.models.functions import Coalesce
from django.urls import reverse

from fleet.history.lines import FINDING, NodeKept, Span, TimelineLine
from fleet.history.moment import TrueThen
from fleet.models import Node
from health.inbox.hours import HOUR, hours_of
from health.models import Finding, FindingAct
from health.rules.base import Severity
from health.web.findings_page import WORST_FIRST
from people.models import User

GLYPHS = {Severity.CRITICAL: "bad", Severity.WARNING: "warn"}
OF_OUR_SIGHT = ("cluster-not-seen", "cluster-unwatched")  # what makes that nobody saw the node, either


def lines_of_findings(node: NodeKept, user: User, span: Span) -> Iterator[TimelineLine]:
    """When each was opened and resolved, and what people did to it. Three queries.

    Of a node that is gone there are none: findings name the row of a node, which went with it.
    """
    if not span.has(FINDING) or not isinstance(node, Node):
        return
    found = Finding.objects.visible_to(user).told().filter(node=node, opened_at__isnull=False)
    for row in found.filter(**span.of("opened_at")).order_by("-opened_at", "-pk")[: span.most]:
        if row.opened_at:
            again = f" ({row.recurrence})" if row.recurrence else ""
            yield _line(row, row.opened_at, f"{row.sentence}{again}", glyph=_glyph(row))
    for row in found.filter(**span.of("resolved_at")).order_by("-resolved_at", "-pk")[: span.most]:
        if row.resolved_at:
            yield _line(row, row.resolved_at, f"No longer so: {row.sentence}", glyph="ok")
    acts = FindingAct.objects.filter(finding__in=found, **span.of("at")).select_related("finding")
    for act in acts.order_by("-at", "-pk")[: span.most]:
        if act.finding:
            because = f" {act.because}" if act.because else ""
            yield _line(act.finding, act.at, f"{act.verb.capitalize()}: {act.said}{because}", who=act.by)


def findings_then(node: NodeKept, user: User, at: datetime) -> Iterator[TrueThen]:
    """Those of the node, and those that say that nobody saw its cluster. One query."""
    about = Q(node__isnull=True, rule__in=OF_OUR_SIGHT)
    if isinstance(node, Node):
        about |= Q(node=node)
    was_open = Q(resolved_at__isnull=True) | Q(resolved_at__gt=at)
    rows = Finding.objects.visible_to(user).told().filter(about & was_open, cluster=node.cluster_id)
    began = Coalesce("first_opened_at", "opened_at")
    for row in rows.alias(began=began).filter(began__lte=at).order_by(WORST_FIRST, "pk"):
        since = row.first_opened_at or row.opened_at or row.since
        yield TrueThen(FINDING, row.sentence, since, row.resolved_at, _href(row), _glyph(row))


def gpus_then(node: NodeKept, _user: User, at: datetime) -> Iterator[TrueThen]:
    """What its GPUs did in the hour of that moment, once it is over. Two queries."""
    if not isinstance(node, Node):
        return
    hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    for each in hours_of(node, hours=1, now=hour + HOUR):
        if each.devices:
            yield TrueThen(
                "gpus",
                f"From {each.hour:%H:%M} to {each.end:%H:%M}: {each.sentence}",
                hour,
                each.end,
                f"{reverse('node', args=[node.pk])}#node-hours",
            )


def _line(row: Finding, at: datetime, sentence: str, *, who: str = "", glyph: str = "part") -> TimelineLine:
    detail = {"finding": row.pk, "rule": row.rule, "severity": row.severity}
    return TimelineLine(at, FINDING, sentence, who, _href(row), glyph, detail)


def _glyph(row: Finding) -> str:
    return GLYPHS.get(Severity(row.severity), "part")


def _href(row: Finding) -> str:
    return f"{reverse('findings')}?finding={row.pk}"
