"""Parts of a page: rendered alone, fetched again after a change, and answered with 304 when unchanged.

A page includes parts of apps above its own by URL name (`rendered_part`).
"""

import gzip
import hashlib
import re
from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.urls import resolve, reverse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_etags, quote_etag
from django.utils.safestring import SafeString, mark_safe

View = Callable[..., HttpResponse]
WORDS_OF_A_TIME = re.compile(
    rb"(<time [^>]*>)[^<]*"
)  # the page keeps “3 s ago” current itself, so it counts as no change


def part_response(view: View) -> View:
    """Adds an ETag over the text, and answers 304 when the browser has that text already."""

    @wraps(view)
    def answer(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code != 200:
            return response
        lasting = WORDS_OF_A_TIME.sub(rb"\1", response.content)
        etag = quote_etag(hashlib.sha256(lasting).hexdigest()[:32])
        if etag in parse_etags(request.headers.get("If-None-Match", "")):
            response = HttpResponse(status=304)
        response["ETag"] = etag
        patch_cache_control(response, private=True, no_cache=True)
        patch_vary_headers(response, ["Cookie"])
        return response

    answer.unconditional = view  # type: ignore[attr-defined]
    return answer


def packed(view: View) -> View:
    """Compresses the answer. Use it only where no input is echoed: the length would leak it (BREACH)."""

    @wraps(view)
    def answer(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        response = view(request, *args, **kwargs)
        patch_vary_headers(response, ["Accept-Encoding"])
        if response.status_code == 200 and "gzip" in request.headers.get("Accept-Encoding", ""):
            response.content = gzip.compress(response.content, 1, mtime=0)
            response["Content-Encoding"] = "gzip"
        return response

    return answer


def rendered_part(request: HttpRequest, name: str, *args: object) -> SafeString:
    """Returns the rendered part of another URL name, for the user of this request."""
    match = resolve(reverse(name, args=args))
    response = match.func.unconditional(request, *match.args, **match.kwargs)  # type: ignore[attr-defined]
    return mark_safe(response.content.decode())  # noqa: S308 - a template of ours rendered it
