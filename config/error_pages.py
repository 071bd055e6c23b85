"""What a person's browser shows of a request that failed: what happened, and a way on. As styled as any other page."""

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
    fields: tuple[str, ...] = ()  # of the request that it is about


NOT_FOUND = Failure(
    404,
    "There is nothing here",
    "The address leads nowhere, or what it led to is gone, or it is not yours to see.",
)
FORBIDDEN = Failure(403, "You may not do this", "Your roles do not allow it.")
FOREIGN_FORM = Failure(
    403,
    "This form is not from here any more",
    "The page it was on is too old, or cookies are off. Nothing was done. Open the page again and send it once more.",
)
BUG = Failure(
    500,
    "This is a bug in Quarterdeck",
    "The request was not carried out to its end, and the log says why. Watching and promoting go on without this page.",
)
NO_PAGE = Failure(
    405, "Nothing is shown here", "This address takes what a form sends, and shows nothing by itself. Nothing was done."
)
TOO_LARGE = Failure(
    413, "This is too large", "What was sent is larger than anything that is read here. Nothing was done."
)
WRONG_HOST = Failure(
    400,
    "Wrong name",
    "This Quarterdeck is not reached by that name. Is it one of QUARTERDECK_ALLOWED_HOSTS?",
)
UNREADABLE = Failure(400, "This cannot be read", "The request cannot be read. Nothing was done.")


def failure_of(error: Exception | None) -> Failure:
    """What Django refuses before any view is asked, by what it was."""
    match error:
        case RequestDataTooBig():
            return TOO_LARGE
        case TooManyFieldsSent() | TooManyFilesSent():
            return Failure(400, UNREADABLE.title, "The request has more fields than any form here. Nothing was done.")
        case DisallowedHost():
            return WRONG_HOST
        case NulCharacter():
            return Failure(400, UNREADABLE.title, f"{error} Nothing was done.", error.fields)
    return UNREADABLE


def forbidden_by(error: Exception | None) -> Failure:
    sentence = str(error) if isinstance(error, PermissionDenied) else ""
    return Failure(403, FORBIDDEN.title, sentence or FORBIDDEN.sentence)


def page(request: HttpRequest, failure: Failure, *, written: str = "") -> HttpResponse:
    """Asks neither database nor session: one of them may be what failed. `written`: in the form that was sent."""
    context = {"failure": failure, "written": written, "request_id": getattr(request, "request_id", "")}
    return HttpResponse(render_to_string("layout/failure.html", context), status=failure.status)


class SayNotAllowed:
    """Django says nothing at all to who opens an address that takes forms alone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code != NO_PAGE.status or response.content:
            return response
        shown = page(request, NO_PAGE)
        shown["Allow"] = response["Allow"]
        return shown
