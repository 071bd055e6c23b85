"""Styled HTML pages for failed requests: the reason and the next step."""

from collections.abc import Callable
from dataclasses import dataclass

from django.core.exceptions import (
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from config.nul import NulCharacter


@dataclass(frozen=True)
class Failure:
    status: int
    title: str
    sentence: str
    fields: tuple[str, ...] = ()  # fields of the request with an error


NOT_FOUND = Failure(
    404,
    "Page not found",
    "This page does not exist, was removed, or you may not see it.",
)
FORBIDDEN = Failure(403, "You may not do this", "Your roles do not allow it.")
FOREIGN_FORM = Failure(
    403,
    "This form has expired",
    "The page is too old, or cookies are off. The form was not processed. Reload the page and send it again.",
)
BUG = Failure(
    500,
    "This is a bug in Quarterdeck",
    "The request failed. The log has the details. Watching and promotions continue.",
)
NO_PAGE = Failure(405, "No page here", "This address only accepts forms. Nothing was changed.")
TOO_LARGE = Failure(413, "Request too large", "The request exceeds the size limit. Nothing was changed.")
WRONG_HOST = Failure(
    400,
    "Unknown host name",
    "This host name is not in QUARTERDECK_ALLOWED_HOSTS.",
)
UNREADABLE = Failure(400, "Invalid request", "The request cannot be parsed. Nothing was changed.")


def failure_of(error: Exception | None) -> Failure:
    """Returns the failure for a request that Django refuses before any view runs."""
    match error:
        case RequestDataTooBig():
            return TOO_LARGE
        case TooManyFieldsSent() | TooManyFilesSent():
            return Failure(400, UNREADABLE.title, "The request has too many fields. Nothing was changed.")
        case DisallowedHost():
            return WRONG_HOST
        case NulCharacter():
            return Failure(400, UNREADABLE.title, f"{error} Nothing was changed.", error.fields)
    return UNREADABLE


def forbidden_by(error: Exception | None) -> Failure:
    sentence = str(error) if isinstance(error, PermissionDenied) else ""
    return Failure(403, FORBIDDEN.title, sentence or FORBIDDEN.sentence)


def page(request: HttpRequest, failure: Failure, *, written: str = "") -> HttpResponse:
    """Renders a failure without database or session, since one of them may have failed. `written` is the sent form's
    text."""
    context = {"failure": failure, "written": written, "request_id": getattr(request, "request_id", "")}
    return HttpResponse(render_to_string("layout/failure.html", context), status=failure.status)


class MethodNotAllowedPage:
    """A middleware that fills Django's empty page for a GET on an address that only accepts forms."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != NO_PAGE.status or response.content:
            return response
        filled = page(request, NO_PAGE)
        filled["Allow"] = response["Allow"]
        return filled
