"""Refusals as HTTP: RFC 9457 problem+json with a sentence. The only module that knows both.

A database outage is not a refusal: it becomes 503 with its reason and a Retry-After.
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
from config.outages import Outage, full_disk, outage_of
from edges.requests import reason
from edges.rest import IF_MATCH
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
from maintenance.refusals import BadNewNodeGate, BadReceiver, CaseRefused, UnknownRequest
from notifications.commands.refusals import BadChannel, BadPreference, BadRoute, NotificationRefusal
from operations.refusals import BadOperation, OperationRefused
from people.rights import NotAllowed
from people.roster.accounts import HasItAlready, KeyReused, LastAdmin, NameTaken
from people.roster.device_authorizations import NotGranted
from people.roster.groups import AlreadyIn
from people.sign_in.step_up import NotConfirmed
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


# The nearest base class counts, so a subclass of a known refusal needs no line here.
REFUSALS: dict[type[Exception], Meaning] = {
    NotConfirmed: Meaning(403, "confirmation-required", "Sign in again"),
    NotAllowed: Meaning(403, "not-allowed", "You may not do this"),
    IllegalMove: Meaning(409, "illegal-move", "Not possible in this state"),
    LostRace: Meaning(409, "lost-race", "Changed by someone else"),
    BadGate: Meaning(400, "bad-gate", "Invalid gate"),
    BadSelector: Meaning(400, "bad-selector", "Invalid selector"),
    CannotAccept: Meaning(409, "cannot-accept", "This cluster cannot be accepted"),
    ProductionAsks: Meaning(409, "production-asks", "Production requires approval"),
    PoolTaken: Meaning(409, "pool-taken", "The name is taken"),
    BadNote: Meaning(400, "bad-note", "Invalid note"),
    NoSuchMoment: Meaning(400, "no-such-moment", "No history for this time"),
    BadSource: Meaning(400, "bad-source", "Invalid telemetry source"),
    SourceOff: Meaning(409, "source-off", "This source is switched off"),
    TrialOpen: Meaning(409, "trial-open", "Another source is being tried"),
    BadOperation: Meaning(400, "bad-operation", "Invalid operation"),
    BadNewNodeGate: Meaning(400, "bad-new-node-gate", "Invalid gate of new nodes"),
    BadReceiver: Meaning(400, "bad-receiver", "Invalid receiver"),
    UnknownRequest: Meaning(404, "unknown-request", "No such repair"),
    CaseRefused: Meaning(409, "case-refused", "Not possible now"),
    OperationRefused: Meaning(409, "operation-refused", "Not possible now"),
    BadPoolFile: Meaning(400, "bad-pool-file", "Invalid pool file"),
    NodeLeft: Meaning(410, "node-left", "This node left its cluster"),
    NameTaken: Meaning(409, "name-taken", "The name is taken"),
    KeyReused: Meaning(409, "key-reused", "The Idempotency-Key was already used"),
    HasItAlready: Meaning(409, "has-it-already", "The person has this role already"),
    AlreadyIn: Meaning(409, "in-group-already", "The person is a member already"),
    NotGranted: Meaning(400, "not-granted", "No token"),
    LastAdmin: Meaning(409, "last-admin", "This is the last admin"),
    OutOfStep: Meaning(409, "out-of-step", "The page you saw is outdated"),
    PoolGone: Meaning(409, "pool-gone", "The pool was removed"),
    PoolInUse: Meaning(409, "pool-in-use", "The pool has a history"),
    FindingRefusal: Meaning(409, "refused", "Refused"),
    BadAct: Meaning(400, "bad-act", "Invalid action on a finding"),
    BadChannel: Meaning(400, "bad-channel", "Invalid channel"),
    BadRoute: Meaning(400, "bad-route", "Invalid route"),
    BadPreference: Meaning(400, "bad-preference", "Invalid preferences"),
    NotificationRefusal: Meaning(409, "refused", "Refused"),
    Refusal: Meaning(409, "refused", "Refused"),
    OutOfDate: Meaning(409, "out-of-date", "The page you saw is outdated"),
    StaleBundle: Meaning(409, "stale-bundle", "The page you saw is outdated"),
    BadFreeze: Meaning(400, "bad-freeze", "Invalid freeze"),
    BadSchedule: Meaning(400, "bad-window", "Invalid window"),
    BadPlan: Meaning(400, "bad-plan", "Invalid plan"),
    AlreadyDecided: Meaning(409, "already-decided", "You have decided already"),
    NotYours: Meaning(403, "not-yours", "Another person must decide"),
    Blocked: Meaning(409, "blocked", "Blocked by a check"),
}


def translate(error: Exception, context: dict[str, Any]) -> Response | None:
    """Returns the answer for a refusal or a bad request. None: a bug; it crashes the request and is logged once."""
    request = context["request"]
    if meaning := meaning_of(error):
        if isinstance(error, (LostRace, OutOfDate)) and IF_MATCH in request.headers:
            meaning = Meaning(412, "precondition-failed", meaning.title)
        return _response(problem(meaning, clean(error), request, **_details_of(error)))
    if outage := outage_of(error):
        log.warning("database outage", error=clean(error), outage=outage.slug)
        full_disk.note(outage)
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
    """Handles Django's 400: an error before any view runs, such as an unknown Host."""
    return _failed(request, error_pages.failure_of(exception))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _failed(request, error_pages.forbidden_by(exception))


def foreign_form(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - as Django calls it
    """Handles Django's CSRF failures."""
    return _failed(request, error_pages.FOREIGN_FORM)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - as Django calls it
    """Answers 404. The page repeats the reason that a person wrote, since the form is lost.

    For an unknown URL the form is not read, since its size was not checked.
    """
    if request.path.startswith("/api/") or request.resolver_match is None:
        return _failed(request, error_pages.NOT_FOUND)
    return error_pages.page(request, error_pages.NOT_FOUND, written=reason(request))


def server_error(request: HttpRequest) -> HttpResponse:
    """Handles Django's 500 while the error is handled; the log has the stack under the request's id."""
    if outage := outage_of(sys.exc_info()[1]):
        full_disk.note(outage)
        return _unavailable(request, outage)
    if not request.path.startswith("/api/"):
        return _failed(request, error_pages.BUG)
    meaning = Meaning(500, "bug", "Internal Server Error")
    sentence = "This is a bug in Quarterdeck, not in your request. Its log has the details under this request_id."
    return JsonResponse(problem(meaning, sentence, request), status=500, content_type=CONTENT_TYPE)


def _unavailable(request: HttpRequest, outage: Outage) -> HttpResponse:
    if request.path.startswith("/api/"):
        content = _problem_of(outage, request)
        response: HttpResponse = JsonResponse(content, status=503, content_type=CONTENT_TYPE)
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
    content = problem(meaning, failure.sentence, request, **({"errors": errors} if errors else {}))
    return JsonResponse(content, status=failure.status, content_type=CONTENT_TYPE)


def clean(error: object) -> str:
    """Returns the error's sentence without characters that UTF-8 cannot encode."""
    return str(error).encode("utf-8", "replace").decode()


def _details_of(error: Exception) -> dict[str, Any]:
    """Returns the details of a refusal: invalid fields, blockers, changes."""
    more: dict[str, Any] = {}
    if problems := getattr(error, "problems", None):
        more["errors"] = [{"field": clean(p["field"]), "sentence": clean(p["sentence"])} for p in problems]
    if blockers := getattr(error, "blockers", None):
        more["blockers"] = blockers
    if changed := getattr(error, "changed", None):
        more["changed"] = [clean(sentence) for sentence in changed]
    if oauth_error := getattr(error, "oauth_error", ""):
        more["error"] = oauth_error
    if left_node := getattr(error, "gone", None):
        more["gone"] = GoneNodeSerializer(left_node).data
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
            served = " or ".join(renderer.media_type for renderer in context["view"].renderer_classes)
            return f"The answer is available only as {served}. Drop “Accept”, or include it."
        case exceptions.Throttled():
            return f"Too many tries. Try again in {round(getattr(error, 'wait', None) or 60)} s."
        case exceptions.APIException() if not isinstance(error, exceptions.NotFound):
            return clean(error.detail)
    return "Not found, or you may not see it."


def _flat(errors: Any, field: str = "") -> Iterator[dict[str, str]]:
    """Flattens DRF's nested errors: {"field": "stages.0.name", "sentence": "…"}."""
    if isinstance(errors, dict):
        for key, inner in errors.items():
            name = "" if key == "non_field_errors" else clean(key)
            yield from _flat(inner, ".".join(part for part in (field, name) if part))
    elif isinstance(errors, list):
        for index, inner in enumerate(errors):
            # A list of sentences belongs to the field itself; a list of dicts to its items, some of which are valid.
            is_item = isinstance(inner, dict)
            yield from _flat(inner, f"{field}.{index}" if is_item else field)
    else:
        yield {"field": field, "sentence": clean(errors)}


def _headers_of(response: Response) -> dict[str, str]:
    return {name: response[name] for name in ("WWW-Authenticate", "Retry-After") if name in response}


def _response(content: dict[str, Any], *, headers: dict[str, str] | None = None) -> Response:
    return Response(content, status=content["status"], headers=headers, content_type=CONTENT_TYPE)


def _slug(status: int) -> str:
    return HTTPStatus(status).phrase.lower().replace(" ", "-")
