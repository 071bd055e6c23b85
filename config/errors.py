"""Refusals as HTTP: RFC 9457 problem+json with a sentence a person can act on. The only place that knows both.

An outage of the database is none: 503, with what it is and when to try again.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from config import error_pages
from config.error_pages import Failure
from config.outages import Outage, outage_of
from edges.requests import reason
from edges.transition_errors import IllegalMove, LostRace
from fleet.api.gone_nodes import GoneNodeSerializer
from fleet.clusters.acceptance import CannotAccept
from fleet.history.moment import NoSuchMoment
from fleet.history.notes import BadNote
from fleet.pools.approval_rules import ProductionAsks
from fleet.pools.changes import PoolGone, PoolInUse, PoolTaken
from fleet.pools.files import BadPoolFile, OutOfStep
from fleet.queries import NodeLeft
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.source_trials import TrialOpen
from health.inbox.telemetry_sources import BadSource
from health.sources.manual_refresh import SourceOff
from kube.selectors import BadSelector
from people.rights import NotAllowed
from people.roster.accounts import HasItAlready, LastAdmin, NameTaken
from people.roster.groups import AlreadyIn
from rollouts.commands.refusals import (
    AlreadyDecided,
    BadFreeze,
    BadPlan,
    BadSchedule,
    Blocked,
    NotYours,
    OutOfDate,
    Refusal,
    StaleBundle,
)
from rollouts.gates.options import BadGate

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:quarterdeck:problem:"


@dataclass(frozen=True)
class Meaning:
    status: int
    slug: str
    title: str


# The nearest base class counts, so that a new refusal of a kind we know needs no line here.
REFUSALS: dict[type[Exception], Meaning] = {
    NotAllowed: Meaning(403, "not-allowed", "You may not do this"),
    IllegalMove: Meaning(409, "illegal-move", "Not possible in this state"),
    LostRace: Meaning(409, "lost-race", "Somebody else was first"),
    BadGate: Meaning(400, "bad-gate", "A gate cannot be read"),
    BadSelector: Meaning(400, "bad-selector", "A selector cannot be read"),
    CannotAccept: Meaning(409, "cannot-accept", "This cluster cannot be accepted"),
    ProductionAsks: Meaning(409, "production-asks", "Production is never changed unasked"),
    PoolTaken: Meaning(409, "pool-taken", "The name is taken"),
    BadNote: Meaning(400, "bad-note", "This is no note"),
    NoSuchMoment: Meaning(400, "no-such-moment", "Nothing can be said of that moment"),
    BadSource: Meaning(400, "bad-source", "This makes no source of telemetry"),
    SourceOff: Meaning(409, "source-off", "This source is switched off"),
    TrialOpen: Meaning(409, "trial-open", "Another source is being tried"),
    BadPoolFile: Meaning(400, "bad-pool-file", "A pool file cannot be read"),
    NodeLeft: Meaning(410, "node-left", "This node left its cluster"),
    NameTaken: Meaning(409, "name-taken", "The name is taken"),
    HasItAlready: Meaning(409, "has-it-already", "The role was given before"),
    AlreadyIn: Meaning(409, "in-group-already", "They are in the group"),
    LastAdmin: Meaning(409, "last-admin", "Nobody would be left who can give roles"),
    OutOfStep: Meaning(409, "out-of-step", "What you saw has changed"),
    PoolGone: Meaning(409, "pool-gone", "The pool is gone"),
    PoolInUse: Meaning(409, "pool-in-use", "The pool has a history"),
    FindingRefusal: Meaning(409, "refused", "Not now, or not like this"),
    BadAct: Meaning(400, "bad-act", "This makes no act on a finding"),
    Refusal: Meaning(409, "refused", "Not now, or not like this"),
    OutOfDate: Meaning(409, "out-of-date", "What you saw has changed"),
    StaleBundle: Meaning(409, "stale-bundle", "What you saw has changed"),
    BadFreeze: Meaning(400, "bad-freeze", "This makes no freeze"),
    BadSchedule: Meaning(400, "bad-window", "This makes no window"),
    BadPlan: Meaning(400, "bad-plan", "This makes no plan"),
    AlreadyDecided: Meaning(409, "already-decided", "You have decided"),
    NotYours: Meaning(403, "not-yours", "Somebody else has to decide"),
    Blocked: Meaning(409, "blocked", "Something stands in the way"),
}


def translate(error: Exception, context: dict[str, Any]) -> Response | None:
    """None for what is neither a refusal nor a bad request: a bug, which crashes the request and is logged once."""
    request = context["request"]
    if meaning := meaning_of(error):
        return _response(problem(meaning, clean(error), request, **_more(error)))
    if outage := outage_of(error):
        log.warning("the database is out", error=clean(error), outage=outage.slug)
        return _response(_problem_of(outage, request), headers={"Retry-After": str(outage.retry_after_s)})
    if (response := exception_handler(error, context)) is None:
        return None
    meaning = Meaning(response.status_code, _slug(response.status_code), HTTPStatus(response.status_code).phrase)
    errors = list(_flat(response.data)) if isinstance(error, exceptions.ValidationError) else []
    more = {"errors": errors} if errors else {}
    sentence = _sentence(error, errors, context)
    return _response(problem(meaning, sentence, request, **more), headers=_headers_of(response))


def meaning_of(error: Exception) -> Meaning | None:
    return next((REFUSALS[kind] for kind in type(error).__mro__ if kind in REFUSALS), None)


def problem(meaning: Meaning, sentence: str, request: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": TYPE + meaning.slug,
        "title": meaning.title,
        "status": meaning.status,
        "detail": sentence,
        "instance": request.path,
        "request_id": getattr(request, "request_id", ""),
        **more,
    }


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: what is wrong before any view is asked, as a Host that is not ours."""
    return _failed(request, error_pages.failure_of(exception))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _failed(request, error_pages.forbidden_by(exception))


def foreign_form(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - as Django calls it
    """Django's CSRF_FAILURE_VIEW."""
    return _failed(request, error_pages.FOREIGN_FORM)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - as Django calls it
    """Why somebody would have done something to what is gone is said once more: it is nowhere else.

    Of an address that leads nowhere nobody has read the form, nor looked how large it is.
    """
    if request.path.startswith("/api/") or request.resolver_match is None:
        return _failed(request, error_pages.NOT_FOUND)
    return error_pages.page(request, error_pages.NOT_FOUND, written=reason(request))


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500, called while the error is handled: the stack is in the log, under the request's id."""
    if outage := outage_of(sys.exc_info()[1]):
        return _unavailable(request, outage)
    if not request.path.startswith("/api/"):
        return _failed(request, error_pages.BUG)
    meaning = Meaning(500, "bug", "Internal Server Error")
    sentence = "This is a bug in Quarterdeck, not in your request. Its log has the details under this request_id."
    return JsonResponse(problem(meaning, sentence, request), status=500, content_type=CONTENT_TYPE)


def _unavailable(request: HttpRequest, outage: Outage) -> HttpResponse:
    if request.path.startswith("/api/"):
        said = _problem_of(outage, request)
        response: HttpResponse = JsonResponse(said, status=503, content_type=CONTENT_TYPE)
    else:
        response = error_pages.page(request, Failure(503, outage.title, outage.detail), written=reason(request))
    response["Retry-After"] = str(outage.retry_after_s)
    return response


def _problem_of(outage: Outage, request: Any) -> dict[str, Any]:
    return problem(Meaning(503, outage.slug, outage.title), outage.detail, request)


def _failed(request: HttpRequest, failure: Failure) -> HttpResponse:
    if not request.path.startswith("/api/"):
        return error_pages.page(request, failure)
    meaning = Meaning(failure.status, _slug(failure.status), HTTPStatus(failure.status).phrase)
    errors = [{"field": clean(field), "sentence": failure.sentence} for field in failure.fields]
    said = problem(meaning, failure.sentence, request, **({"errors": errors} if errors else {}))
    return JsonResponse(said, status=failure.status, content_type=CONTENT_TYPE)


def clean(error: object) -> str:
    """Its sentence, without what UTF-8 cannot carry: a caller's own rubbish must not break the answer about it."""
    return str(error).encode("utf-8", "replace").decode()


def _more(error: Exception) -> dict[str, Any]:
    """What a refusal knows besides its sentence: the fields that are wrong, what stands in the way, what changed."""
    more: dict[str, Any] = {}
    if problems := getattr(error, "problems", None):
        more["errors"] = [{"field": clean(p["field"]), "sentence": clean(p["sentence"])} for p in problems]
    if blockers := getattr(error, "blockers", None):
        more["blockers"] = blockers
    if changed := getattr(error, "changed", None):
        more["changed"] = [clean(sentence) for sentence in changed]
    if gone := getattr(error, "gone", None):
        more["gone"] = GoneNodeSerializer(gone).data
    return more


def _sentence(error: Exception, errors: list[dict[str, str]], context: dict[str, Any]) -> str:
    if errors:
        return " ".join(f"{e['field']}: {e['sentence']}" if e["field"] else e["sentence"] for e in errors[:3])
    match error:
        case exceptions.NotAuthenticated():
            return "Sign in first: send “Authorization: Bearer TOKEN”, or the session cookie of POST /api/v1/session."
        case exceptions.MethodNotAllowed():
            return f"{context['request'].method} does not work here. Use {', '.join(context['view'].allowed_methods)}."
        case exceptions.UnsupportedMediaType():
            return "Send the body as JSON, with “Content-Type: application/json”."
        case exceptions.NotAcceptable():
            served = " or ".join(each.media_type for each in context["view"].renderer_classes)
            return f"This is served as {served} only. Leave out “Accept”, or include that."
        case exceptions.Throttled():
            return f"Too many tries. Try again in {round(getattr(error, 'wait', None) or 60)} s."
        case exceptions.APIException() if not isinstance(error, exceptions.NotFound):
            return clean(error.detail)
    return "There is nothing here, or nothing that you may see."


def _flat(found: Any, field: str = "") -> Iterator[dict[str, str]]:
    """DRF's nested errors as rows: {"field": "stages.0.name", "sentence": "…"}."""
    if isinstance(found, dict):
        for key, inner in found.items():
            name = "" if key == "non_field_errors" else clean(key)
            yield from _flat(inner, ".".join(part for part in (field, name) if part))
    elif isinstance(found, list):
        for index, inner in enumerate(found):
            # A list of sentences is about the field itself; a list of dicts about its items, of which some are fine.
            is_item = isinstance(inner, dict)
            yield from _flat(inner, f"{field}.{index}" if is_item else field)
    else:
        yield {"field": field, "sentence": clean(found)}


def _headers_of(response: Response) -> dict[str, str]:
    return {name: response[name] for name in ("WWW-Authenticate", "Retry-After") if name in response}


def _response(content: dict[str, Any], *, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status=content["status"], headers=headers, content_type=CONTENT_TYPE)


def _slug(status: int) -> str:
    return HTTPStatus(status).phrase.lower().replace(" ", "-")
