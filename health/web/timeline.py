"""The findings open at a moment, acts of earlier versions, and the findings and Xids of one GPU on its timeline."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Coalesce
from django.urls import reverse

from fleet.history.lines import FINDING, GPUS, NodeKept, Span, TimelineLine, position_in, without_event
from fleet.history.moment import TrueThen
from fleet.models import DomainEvent, Gpu, Node, NodeEvent
from fleet.queries import timeline
from health.inbox.hours import HOUR, device_of, hour_at
from health.models import Finding, FindingAct, GpuHour
from health.models.finding import WORST_FIRST
from health.rules.base import Severity
from people.models import User
from wording.numbers import count

GLYPHS = {Severity.CRITICAL: "bad", Severity.WARNING: "warn"}
OBSERVATION_GAPS = (
    "cluster-not-seen",
    "cluster-unwatched",
)  # rules whose findings mean that the node was not observed either


def findings_of_gpu(gpu: Gpu) -> list[int]:
    """Returns the keys of findings about the GPU, or about its node as a whole. One query."""
    found = Finding.objects.notified().filter(node=gpu.node)
    return list((found.of_gpu(gpu) | found.of_no_gpu()).order_by().values_list("pk", flat=True))


def lines_of_acts(node: NodeKept, user: User, span: Span) -> Iterator[TimelineLine]:
    """Yields the acts on its findings before acts were domain events. One query; two for a departed node."""
    if not span.has(FINDING):
        return
    found = Finding.objects.visible_to(user).notified().filter(cluster=node.cluster_id)
    mine = found.filter(node=node) if isinstance(node, Node) else found.filter(pk__in=_findings_in_timeline(node))
    if span.gpu is not None:
        mine = mine.of_gpu(span.gpu) | mine.of_no_gpu()
    acts = FindingAct.objects.filter(span.of("at", "acts"), without_event(node, FINDING), finding__in=mine.order_by())
    for act in acts.order_by("-at", "-pk")[: span.most]:
        sentence = f"{act.verb.capitalize()}: {act.said} {act.reason}".rstrip()
        detail = {"finding": act.finding_id, "rule": act.rule}
        position = position_in("acts", act.pk)
        yield TimelineLine(act.at, FINDING, sentence, act.by, _page(act.finding_id), detail=detail, position=position)


def lines_of_xids(_node: NodeKept, _user: User, span: Span) -> Iterator[TimelineLine]:
    """Yields the hours in which a GPU had Xids, with one query. An exporter has only the last one, without a time."""
    if span.gpu is None or not span.has(GPUS):
        return
    rows = GpuHour.objects.filter(cluster=span.gpu.node.cluster_id, node_name=span.gpu.node.name, xids__gt=0)
    rows = rows.filter(span.of("hour", "xids", is_one_an_instant=True), **device_of(span.gpu))
    seen: dict[datetime, int] = {}
    for hour, xids in rows.order_by("-hour").values_list("hour", "xids"):
        if hour not in seen and len(seen) == span.most:
            break
        seen[hour] = max(xids or 0, seen.get(hour, 0))  # each slice reports the Xids of its GPU
    for hour, xids in seen.items():
        sentence = f"At least {count(xids, 'Xid')} from {hour:%H:%M} to {hour + HOUR:%H:%M} UTC."
        yield TimelineLine(
            hour, GPUS, sentence, glyph="warn", detail={"xids": xids, "until": (hour + HOUR).isoformat()}
        )


def findings_then(node: NodeKept, user: User, at: datetime) -> Iterator[TrueThen]:
    """Yields the node's findings, and those about its cluster not being observed.

    Two queries; three for a departed node, whose findings its events name.
    """
    was_open = Q(resolved_at__isnull=True) | Q(resolved_at__gt=at)
    began = Coalesce("first_opened_at", "opened_at")
    told = Finding.objects.notified().filter(was_open, cluster=node.cluster_id)
    # Our own view counts from the first second, also before a notification.
    then = told.alias(began=began).filter(Q(began__lte=at) | Q(rule__in=OBSERVATION_GAPS, since__lte=at))
    about = Q(node=node) if isinstance(node, Node) else Q(pk__in=_findings_in_timeline(node))
    rows = list(then.filter(about | Q(node__isnull=True, rule__in=OBSERVATION_GAPS)).order_by(WORST_FIRST, "pk"))
    keys = [row.pk for row in rows]
    seen = set(Finding.objects.visible_to(user).filter(pk__in=keys).values_list("pk", flat=True))
    for row in rows:
        since = row.first_opened_at or row.opened_at or row.since
        is_observation_gap = row.rule in OBSERVATION_GAPS
        href = _page(row.pk) if row.pk in seen else ""
        yield TrueThen(
            FINDING,
            row.title,
            min(since, row.since) if is_observation_gap else since,
            row.resolved_at,
            href,
            _glyph(row),
            is_observation_gap=is_observation_gap,
        )


def _findings_in_timeline(node: NodeKept) -> set[int]:
    events = DomainEvent.objects.filter(cluster=node.cluster_id, node_uid=node.uid, kind__startswith="finding.")
    lines = timeline(node).filter(kind="finding")  # before findings were domain events
    both = events.order_by().values_list("facts__finding").union(lines.order_by().values_list("detail__finding"))
    return {key for (key,) in both} - {None}


def gpus_then(node: NodeKept, _user: User, at: datetime) -> Iterator[TrueThen]:
    """Yields the GPU activity in the completed hour of that moment. One query, and one more with telemetry.

    Hours are stored by node name. If another node had the name in the same hour, they belong to both.
    """
    each = hour_at(node, at)
    if not each.devices:
        return
    others = NodeEvent.objects.filter(cluster=node.cluster_id, node_name=node.name).exclude(node_uid=node.uid)
    is_shared = others.filter(at__gte=each.hour, at__lt=each.end).exists()
    beside = ", of this node and another node that had the same name then" if is_shared else ""
    href = f"{reverse('node', args=[node.pk])}#node-hours" if isinstance(node, Node) else ""
    sentence = f"From {each.hour:%H:%M} to {each.end:%H:%M}{beside}: {each.sentence}"
    yield TrueThen(GPUS, sentence, each.hour, each.end, href)


def _glyph(row: Finding) -> str:
    return GLYPHS.get(Severity(row.severity), "part")


def _page(finding_id: int | None) -> str:
    return f"{reverse('findings')}?finding={finding_id}"
