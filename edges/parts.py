"""A part of a page: rendered alone, fetched again when it changed, and not sent again when it did not.

A page takes the parts of an app that stands above its own by their address (`taken`).
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
WORDS_OF_A_TIME = re.compile(rb"(<time [^>]*>)[^<]*")  # “3 s ago” is the page's to keep current: no change


def part(view: View) -> View:
    """Give the answer an ETag over its text, and answer 304 where the browser has it already."""

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
    """Send it packed, for what has nothing in it that somebody put into the question: its length then tells nothing."""

    @wraps(view)
    def answer(request: HttpRequest, *args, **kwargs) -> HttpResponse:
        response = view(request, *args, **kwargs)
        patch_vary_headers(response, ["Accept-Encoding"])
        if response.status_code == 200 and "gzip" in request.headers.get("Accept-Encoding", ""):
            response.content = gzip.compress(response.content, 1, mtime=0)
            response["Content-Encoding"] = "gzip"
        return response

    return answer


def taken(request: HttpRequest, name: str, *args: object) -> SafeString:
    """The text of a part that stands at another address, for who asks for this page. `name`: of its URL."""
    found = resolve(reverse(name, args=args))
    response = found.func.unconditional(request, *found.args, **found.kwargs)  # type: ignore[attr-defined]
    return mark_safe(response.content.decode())  # noqa: S308 - a template of ours rendered it
