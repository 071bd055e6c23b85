"""Rights on notifications on pages, as in REST."""

from collections.abc import Callable
from functools import wraps

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse

from edges.parts import View
from edges.requests import PersonRequest
from people.rights import NotAllowed, Permission, require, why_not


def for_the_fleet(permission: Permission) -> Callable[[View], View]:
    """Refuses whoever lacks the permission on the whole fleet, since the log names findings of every cluster."""

    def guard(view: View) -> View:
        @wraps(view)
        def guarded(request: PersonRequest, *args, **kwargs) -> HttpResponse:
            try:
                require(request.user, permission)
            except NotAllowed as refusal:
                raise PermissionDenied(str(refusal)) from refusal
            return view(request, *args, **kwargs)

        return guarded

    return guard


def why_not_change(request: PersonRequest) -> str:
    return why_not(request.user, Permission.ADMINISTER)
