"""Says to whoever has no role that they have none: every list is empty to them, and reads as “nothing is wrong”.

In one place for every page there is, also those that are still to be written.
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
        """Once a request: whatever asks for rights on its way asks these rows."""
        if not request.path.startswith("/api/") and request.user.is_authenticated:
            prefetch_related_objects([request.user], "bindings")


def _is_of_the_fleet(request: HttpRequest, response: HttpResponse) -> bool:
    """A page that shows something of the fleet; not one's own account, nor what failed."""
    found = request.resolver_match
    is_page = response.status_code == 200 and response.get("Content-Type", "").startswith("text/html")
    if found is None or not is_page or request.path.startswith("/api/"):
        return False
    return not found._func_path.startswith("people.")  # noqa: SLF001 - Django's own technical pages name a view by it


def _has_role(request: HttpRequest) -> bool:
    """One of what is gone gives nothing. Two queries, of who has none on the fleet."""
    if not request.user.is_authenticated or any(each.scope == ScopeKind.FLEET for each in request.user.bindings.all()):
        return True
    return any(each.place for each in roles_of(request.user))
