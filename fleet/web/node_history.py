"""The history page of a node, even after it left: timeline, and state at a moment."""

from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_POST

from edges.digests import digest
from edges.fields import INSTANT_EXAMPLE, INSTANT_PATTERN, written_as
from edges.kept_input import kept_if_refused, pop_kept_input
from edges.offsets import with_offset
from edges.parts import part_response
from edges.requests import PersonRequest, report_act, text_of
from fleet.history import notes
from fleet.history.lines import (
    ID_CHARS,
    LINE_KINDS,
    WITHOUT_PODS,
    LinePosition,
    NodeKept,
    Span,
    TimelineLine,
    kinds_in,
    page_of,
    position_of,
)
from fleet.history.moment import NodeMoment, NoSuchMoment, moment_of
from fleet.models import GoneNode
from fleet.queries import kept_node
from people.rights import NotAllowed

INSTANT_AT_MOST = 40  # characters
REFUSALS = (notes.BadNote, NotAllowed)


class InstantField(forms.CharField):
    """A date and time in ISO 8601; UTC without an offset."""

    def __init__(self, **given: Any) -> None:
        super().__init__(max_length=INSTANT_AT_MOST, required=False, **given)

    def clean(self, value: Any) -> datetime | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            at = parse_datetime(with_offset(text))
            in_utc = at and (at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))
        except (ValueError, OverflowError):  # near the years 1 and 9999 a conversion to UTC overflows
            in_utc = None
        if in_utc is None or not text.isascii():
            raise forms.ValidationError("Write date and time as 2026-11-30 02:40.")
        return in_utc


class HistoryForm(forms.Form):
    at = InstantField(widget=written_as(INSTANT_EXAMPLE, INSTANT_PATTERN))
    before = InstantField()
    below = forms.CharField(max_length=ID_CHARS, required=False)  # id of the last line shown

    def clean_below(self) -> LinePosition | None:
        text = self.cleaned_data["below"]
        position = position_of(text)
        if text and position is None:
            raise forms.ValidationError("This is not a line of a history.")
        return position


@part_response
def timeline_part(request: PersonRequest, node_id: int) -> HttpResponse:
    node = _load_node_history(request, node_id)
    return render(request, "fleet/node/_timeline.html", timeline_of(node, node_id, request, Span(WITHOUT_PODS)))


def history(request: PersonRequest, node_id: int) -> HttpResponse:
    """Renders the history by pages; with `at`, the state at that moment."""
    node, now = _load_node_history(request, node_id), timezone.now()
    form = HistoryForm(request.GET)
    form.is_valid()
    at, before = form.cleaned_data.get("at"), form.cleaned_data.get("before")
    moment, status = None, 400 if form.errors else 200
    if at is not None:
        try:
            moment = moment_of(node, request.user, at, now=now)
        except NoSuchMoment as refusal:
            form.add_error("at", str(refusal))
            status = 400
    kinds = kinds_in(request.GET.getlist("kind")[: len(LINE_KINDS)])
    shown = {
        "kept": node,
        "is_gone": isinstance(node, GoneNode),
        "form": form,
        "at": form.data.get("at", "") if at is None else f"{at:%Y-%m-%d %H:%M:%S}",
        "may_note": not notes.why_not_note(request.user, node),
        "longest_note": notes.LONGEST,
        "kinds": [(key, title, key in kinds, _toggled(kinds, key)) for key, (title, _) in LINE_KINDS.items()],
        "any_kind": bool(kinds),
        "key": uuid4().hex,
        "written": pop_kept_input(request, _input_key(node_id)),
        "moment": _moment(moment) if moment else None,
        **timeline_of(node, node_id, request, Span(kinds, before=before, below=form.cleaned_data.get("below"))),
    }
    return render(request, "fleet/node/history.html", shown, status=status)


@require_POST
def post_note(request: PersonRequest, node_id: int) -> HttpResponse:
    node = _load_node_history(request, node_id)
    text = text_of(request, "text")
    key = f"{request.POST.get('key', '')[:32]} {digest(text)}"  # edited text after going back is another note
    kept = kept_if_refused(request, _input_key(node_id), "text", refusals=REFUSALS)
    with report_act(request, REFUSALS, done="Your note is on the timeline."), kept:
        notes.add_note(node, request.user, text, key=key, now=timezone.now())
    return redirect("node-history", node_id)


def _input_key(node_id: int) -> str:
    return f"note-{node_id}"


def _load_node_history(request: HttpRequest, node_id: int) -> NodeKept:
    node = kept_node(node_id, user=request.user)
    if node is None:
        raise Http404
    return node


def timeline_of(node: NodeKept, node_id: int, request: PersonRequest, span: Span) -> dict[str, Any]:
    lines, goes_on = page_of(node, request.user, span)
    older = [("before", lines[-1].at.isoformat()), ("below", lines[-1].id)] if goes_on else []
    return {
        "node_id": node_id,
        "cluster_id": node.cluster_id,
        "days": _lines_by_day(lines),
        "older": older and urlencode([*(("kind", kind) for kind in sorted(span.kinds)), *older]),
    }


def _lines_by_day(lines: list[TimelineLine]) -> list[dict[str, Any]]:
    return [{"grouper": day, "list": list(of_day)} for day, of_day in groupby(lines, key=lambda line: line.at.date())]


def _moment(moment: NodeMoment) -> dict[str, Any]:
    return {"moment": moment, "days": _lines_by_day(list(moment.around))}


def _toggled(kinds: frozenset[str], key: str) -> str:
    """Returns the query with this kind added or removed."""
    return urlencode([("kind", kind) for kind in sorted(kinds ^ {key})])
