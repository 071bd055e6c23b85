"""The page to which a person returns after a sign-in."""

from urllib.parse import urlsplit

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme


def own_page(request: HttpRequest, url: str) -> str:
    """Returns the address of a page of ours, or nothing."""
    is_ours = url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())
    return url if is_ours else ""


def form_page(request: HttpRequest) -> str:
    """Returns the page of the form that was sent: the Referer, or the fleet page when the Referer is not ours."""
    sent_from = own_page(request, request.headers.get("Referer", ""))
    return urlsplit(sent_from)._replace(scheme="", netloc="", fragment="").geturl() if sent_from else reverse("fleet")
