"""The page on which a signed-in person confirms or denies the sign-in of a command line."""

from datetime import timedelta
from math import ceil
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from edges.requests import PersonRequest, report_act
from edges.transition_errors import LostRace
from people.models import DeviceAuthorization, User
from people.models.device_authorization import normalized_user_code
from people.rights import OF_TOKENS, scope_of
from people.roster.device_authorizations import confirm, deny, unanswered_request
from people.sign_in.addresses import client_address
from people.sign_in.step_up import require_recent_sign_in
from people.sign_in.throttle import count_user_code
from people.web.account import TokenForm

UNKNOWN = "This code is unknown, expired or already used. Run the command again for a new code."


class DeviceForm(TokenForm):
    """The token for the command line: its permissions are at most those that the person has somewhere."""

    user_code = forms.CharField(max_length=20, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, person: User, **given: Any) -> None:
        super().__init__(data, **given)
        own = [item.value for item in OF_TOKENS if not scope_of(person, item).nowhere]
        self.fields["permissions"].choices = [(value, value) for value in own]  # type: ignore[attr-defined]


@never_cache
@require_GET
def device(request: PersonRequest) -> HttpResponse:
    """Asks for the code, or shows the request with this code. A link may have the code; it confirms nothing."""
    typed = request.GET.get("user_code", "").strip()[:20]
    code = normalized_user_code(typed) or typed
    if not code:
        return _page(request)
    if refusal := _refusal_to_look_up(request):
        return refusal
    row = unanswered_request(code, now=timezone.now())
    if row is None:
        return _page(request, problem=UNKNOWN, code=code, status=404)
    form = DeviceForm(person=request.user, initial={"user_code": code, "name": row.client or "Command line"})
    return _page(request, form=form, row=row, code=code)


@never_cache
@require_POST
def confirm_device(request: PersonRequest) -> HttpResponse:
    form = DeviceForm(request.POST, person=request.user)
    if refusal := _refusal_to_look_up(request):
        return refusal
    code = request.POST.get("user_code", "")[:20]
    row = unanswered_request(code, now=timezone.now())
    if row is None:
        return _page(request, problem=UNKNOWN, code=code, status=404)
    if not form.is_valid():
        return _page(request, form=form, row=row, code=code, status=400)
    require_recent_sign_in(request)
    now, cleaned = timezone.now(), form.cleaned_data
    with report_act(request, (LostRace,), done="The command line is signed in. Return to the terminal."):
        confirm(
            row,
            request.user,
            name=cleaned["name"],
            permissions=cleaned["permissions"],
            expires_at=now + timedelta(days=cleaned["days"]),
            now=now,
        )
    return redirect("account")


@never_cache
@require_POST
def deny_device(request: PersonRequest) -> HttpResponse:
    if refusal := _refusal_to_look_up(request):
        return refusal
    row = unanswered_request(request.POST.get("user_code", ""), now=timezone.now())
    if row is None:
        messages.error(request, UNKNOWN)
        return redirect("account")
    with report_act(request, (LostRace,), done="Denied. The command line gets no token."):
        deny(row, request.user, now=timezone.now())
    return redirect("account")


def _refusal_to_look_up(request: PersonRequest) -> HttpResponse | None:
    """Returns the answer to somebody who tries too many codes."""
    wait = count_user_code(request.user, now=timezone.now())
    if wait is None:
        return None
    seconds = ceil(wait.total_seconds())
    response = _page(request, problem=f"Too many tries. Wait {seconds} s, then try again.", status=429)
    response["Retry-After"] = str(seconds)
    return response


def _page(
    request: PersonRequest,
    *,
    form: DeviceForm | None = None,
    row: DeviceAuthorization | None = None,
    code: str = "",
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    own = client_address(request)
    context = {"form": form, "asked": row, "code": code, "problem": problem, "own_address": own}
    return render(request, "people/account/device.html", context, status=status)
