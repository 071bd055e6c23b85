"""A page for people without any role. Without it every list would be empty and read as “nothing is wrong”.

A middleware, so that it covers every page.
"""

from collections.abc import Callable
from typing import Any

from django.db.models import prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from people.models.user import ScopeKind
from people.roster.everybody import roles_of

PART = "/parts/"


class NoRole:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not _is_of_the_fleet(request, response) or _has_role(request):
            return response
        template = "people/sign_in/_no_role.html" if request.path.startswith(PART) else "people/sign_in/no_role.html"
        return render(request, template)

    def process_view(self, request: HttpRequest, *_: Any) -> None:
        """Loads the roles once per request, for all permission checks of the request."""
        if not request.path.startswith("/api/") and request.user.is_authenticated:
            prefetch_related_objects([request.user], "bindings")


def _is_of_the_fleet(request: HttpRequest, response: HttpResponse) -> bool:
    """Tells whether the response is a page about the fleet, not the person's own account or an error."""
    match = request.resolver_match
    is_page = response.status_code == 200 and response.get("Content-Type", "").startswith("text/html")
    if match is None or not is_page or request.path.startswith("/api/"):
        return False
    return not match._func_path.startswith("people.")  # noqa: SLF001 - Django's own technical pages name a view by it


def _has_role(request: HttpRequest) -> bool:
    """Tells whether a person has a role on an existing place. Two queries for a person without a fleet role."""
    if not request.user.is_authenticated or any(item.scope == ScopeKind.FLEET for item in request.user.bindings.all()):
        return True
    return any(item.place for item in roles_of(request.user))
