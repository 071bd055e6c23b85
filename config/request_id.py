"""Gives every request a name, so that the sentence a person reads and the line in the log can be brought together."""

import re
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-ID"
SANE = re.compile(r"[A-Za-z0-9._-]{8,64}")  # what a proxy in front may have chosen; anything else is not ours to log


class RequestId:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request.request_id = given if SANE.fullmatch(given) else uuid.uuid4().hex  # type: ignore[attr-defined]
        with structlog.contextvars.bound_contextvars(request_id=request.request_id):  # type: ignore[attr-defined]
            response = self.get_response(request)
        response[HEADER] = request.request_id  # type: ignore[attr-defined]
        return response
