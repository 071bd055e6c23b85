"""Refusal of NUL characters in requests: PostgreSQL text cannot hold them, and no valid input has one.

JSON bodies are checked where they are parsed (`edges.request_parsers`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, parse_cookie

NUL = "\x00"
FORMS = {"application/x-www-form-urlencoded", "multipart/form-data"}


class NulCharacter(SuspiciousOperation):
    def __init__(self, place: str, fields: Iterable[str] = ()) -> None:
        super().__init__(f"There is a NUL character in {place}.")
        self.fields = tuple(fields)  # the affected fields, if they have names


class RefuseNul:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Checks path, query and cookies. A quoted cookie may contain any character in octal, and is used to look up
        sessions."""
        _refuse("the address", [request.path_info])
        _refuse_fields("the query", request.GET.lists())
        _refuse("a cookie", _texts(_listed(request.COOKIES)))
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> None:
        if request.content_type in FORMS and not request.path.startswith("/api/"):
            _refuse_fields("the form", request.POST.lists())


class RefuseNulCookie:
    """The same check for WebSockets, whose session is also looked up by a cookie."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        cookies = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"cookie"]
        if any(NUL in text for cookie in cookies for text in _texts(_listed(parse_cookie(cookie)))):
            return await WebsocketDenier()(scope, receive, send)
        return await self.application(scope, receive, send)


def _listed(given: Mapping[str, str]) -> Iterable[tuple[str, list[str]]]:
    return ((name, [value]) for name, value in given.items())


def _texts(lists: Iterable[tuple[str, list[str]]]) -> Iterable[str]:
    for name, values in lists:
        yield name
        yield from values


def _refuse_fields(place: str, lists: Iterable[tuple[str, list[str]]]) -> None:
    if fields := [name for name, values in lists if any(NUL in text for text in (name, *values))]:
        raise NulCharacter(place, fields)


def _refuse(place: str, texts: Iterable[str]) -> None:
    if any(NUL in text for text in texts):
        raise NulCharacter(place)
