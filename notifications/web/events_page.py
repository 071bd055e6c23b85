"""The page of events of the clusters that a user sees, newest first."""

from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from edges.csv_text import as_csv
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.event_kinds import EVENT_KINDS, FAMILIES
from fleet.history.event_pages import page_of_event
from fleet.messages.numbers import numbers_of
from fleet.models import Cluster, DomainEvent, Observer, Pool
from health.models.finding import SEVERITIES
from health.web.saved_views import context_of, forget_view, save_view
from notifications.events import EVENT_VIEWS, EventFilters, EventPageFilters, EventView, receivers_of
from people.models import User
from people.rights import Permission, scope_of

PER_PAGE = 50
SPANS = [("1", "1 hour"), ("8", "8 hours"), ("24", "24 hours"), ("72", "3 days"), ("168", "7 days")]
MOST_ROWS = 50_000  # of a file
AT_ONCE = 1000
NOT_SHOWN = ("not permitted",)  # shown instead of channels
HEAD = ("id", "at", "cluster", "kind", "severity", "object", "node", "sentence", "by", "sent_to")


@require_GET
def events(request: PersonRequest) -> HttpResponse:
    clusters = dict(Cluster.objects.visible_to(request.user).order_by("name").values_list("pk", "name"))
    pools = Pool.objects.visible_to(request.user).select_related("cluster").order_by("cluster__name", "name")
    table = _table(request)
    context = {
        "seq": numbers_of(Observer.batches_of(clusters)),
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        **table,
        **context_of(request, EVENT_VIEWS),
        "cluster_choices": list(clusters.values()),
        "pool_choices": [(str(pool.pk), f"{pool.cluster.name}/{pool.name}") for pool in pools],
        "kind_choices": [
            (title, family, [kind for kind in EVENT_KINDS.values() if kind.key.startswith(f"{family}.")])
            for family, title in FAMILIES.items()
        ],
        "severity_choices": [value for value, _ in SEVERITIES],
        "span_choices": SPANS,
    }
    return render(request, "notifications/events/page.html", context, status=400 if table["problems"] else 200)


@part_response
def events_part(request: PersonRequest) -> HttpResponse:
    table = _table(request)
    response = render(request, "notifications/events/_table.html", table, status=400 if table["problems"] else 200)
    if request.headers.get("HX-Trigger") == "event-filters":
        response["HX-Push-Url"] = EVENT_VIEWS.address(table["query"])
    return response


@require_GET
def csv_file(request: PersonRequest) -> HttpResponse | StreamingHttpResponse:
    """Streams the matching events, newest first, at most 50,000."""
    asked = EventFilters(request.GET, _rows(request.user), request=request)
    if not asked.is_valid():
        return HttpResponse(" ".join(_problems(asked)), status=400, content_type="text/plain; charset=utf-8")
    response = StreamingHttpResponse(_stream(asked.qs, request.user), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="events-{timezone.now():%Y%m%d-%H%M%S}.csv"'
    response["Cache-Control"] = "private, no-store"
    return response


@require_POST
def save(request: PersonRequest) -> HttpResponse:
    return save_view(request, EVENT_VIEWS)


@require_POST
def forget(request: PersonRequest, view_id: int) -> HttpResponse:
    return forget_view(request, EVENT_VIEWS, view_id)


def _table(request: PersonRequest) -> dict[str, Any]:
    asked = EventPageFilters(request.GET, _rows(request.user), request=request)
    is_valid = asked.is_valid()
    found = list(asked.qs[: PER_PAGE + 1]) if is_valid else []
    shown = found[:PER_PAGE]
    receivers = receivers_of(shown, request.user, now=timezone.now())
    view = EventView.read(request.GET)
    return {
        "wanted": dict(view.given),
        "query": view.query(),
        "problems": [] if is_valid else _problems(asked),
        "lines": [(event, page_of_event(event), (receivers or {}).get(event.pk, [])) for event in shown],
        "has_receivers": receivers is not None,
        "older_than": shown[-1].pk if len(found) > PER_PAGE else None,
        "is_first_page": "before" not in request.GET,
    }


def _rows(user: User) -> QuerySet[DomainEvent]:
    return DomainEvent.objects.visible_to(user).select_related("cluster").order_by("-pk")


def _problems(asked: EventFilters) -> list[str]:
    return [f"{name}: {' '.join(map(str, errors))}" for name, errors in asked.form.errors.items()]


async def _stream(events: QuerySet[DomainEvent], user: User) -> AsyncIterator[str]:
    """Yields text. Rows are read in the request's thread, which owns the database connection."""
    yield as_csv([HEAD])
    last, left = None, MOST_ROWS
    while left:
        rows = events if last is None else events.filter(pk__lt=last)
        some: list[DomainEvent] = await sync_to_async(partial(list, rows[: min(AT_ONCE, left)]))()
        if not some:
            return
        receivers = await sync_to_async(receivers_of)(some, user, now=timezone.now())
        yield as_csv(_cells(event, NOT_SHOWN if receivers is None else receivers[event.pk]) for event in some)
        last, left = some[-1].pk, left - len(some)


def _cells(event: DomainEvent, receivers: Iterable[str]) -> tuple[object, ...]:
    return (
        event.pk, event.at.isoformat(), event.cluster.name, event.kind, event.severity, event.key, event.node_name,
        event.sentence, event.actor, ", ".join(receivers),
    )  # fmt: skip
