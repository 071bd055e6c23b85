"""The page on which a signed-in person signs in again for an act, and the input of the form that waits for it."""

from collections.abc import Callable
from datetime import datetime
from math import ceil
from typing import Any

from django import forms
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from edges.requests import PersonRequest
from people.roster.everybody import has_single_sign_on
from people.sign_in.second_factor import note_second_factor, why_wrong
from people.sign_in.step_up import NotConfirmed, confirm_session
from people.sign_in.throttle import count_password, forgive
from people.web.return_pages import form_page, own_page
from people.web.second_factor import ways_of

UNSENT = "unsent"  # in the session
MOST_CHARACTERS = 20_000  # of the input; the session is one row
WRONG = "This password is wrong."


class PasswordForm(forms.Form):
    password = forms.CharField(max_length=4096, strip=False, widget=forms.PasswordInput)


class AskToConfirm:
    """Redirects to the page when a view raises `NotConfirmed`, and stores the input. REST answers 403 itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, NotConfirmed):
            return None
        page = form_page(request)
        _store_input(request, page)
        return redirect(f"{reverse('confirm')}?{urlencode({REDIRECT_FIELD_NAME: page})}")


@never_cache
@require_http_methods(["GET", "POST"])
def confirm(request: PersonRequest) -> HttpResponse:
    """Shows the page, or checks the password."""
    if request.method == "GET":
        return _page(request, PasswordForm(), request.GET.get(REDIRECT_FIELD_NAME, ""))
    next_url, form = request.POST.get(REDIRECT_FIELD_NAME, ""), PasswordForm(request.POST)
    name, now = request.user.get_username(), timezone.now()
    if "password" not in request.POST:
        if problem := why_wrong(request, request.user, request.POST.dict(), now=now):
            return _page(request, PasswordForm(), next_url, problem=problem, status=400)
        note_second_factor(request.session)
        return _confirmed(request, next_url, now=now)
    if wait := count_password(request, name, now=now):
        seconds = ceil(wait.total_seconds())
        form.add_error(None, f"Too many tries. Wait {seconds} s, then try again.")
        return _page(request, form, next_url, status=429)
    if not form.is_valid() or not request.user.check_password(form.cleaned_data["password"]):
        form.add_error("password", WRONG)
        return _page(request, form, next_url, status=400)
    forgive(request, name)
    return _confirmed(request, next_url, now=now)


def _confirmed(request: PersonRequest, next_url: str, *, now: datetime) -> HttpResponse:
    confirm_session(request.session, at=now)
    return redirect(own_page(request, next_url) or "account")


def unsent_input(request: HttpRequest) -> dict[str, Any]:
    """Context processor: the input of a form of this page that waited for the sign-in. It is given once."""
    if request.method != "GET" or not hasattr(request, "session"):
        return {}
    unsent = request.session.get(UNSENT)
    if not unsent or unsent["page"].partition("?")[0] != request.path:
        return {}
    del request.session[UNSENT]
    return {"unsent": unsent}


def _store_input(request: HttpRequest, page: str) -> None:
    fields = [
        (name, value) for name, values in request.POST.lists() for value in values if name != "csrfmiddlewaretoken"
    ]
    if sum(len(name) + len(value) for name, value in fields) <= MOST_CHARACTERS:
        request.session[UNSENT] = {"page": page, "action": request.path, "fields": fields}


def _page(
    request: PersonRequest, form: PasswordForm, next_url: str, *, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "problem": problem,
        **ways_of(request.user),
        "form": form,
        "next": own_page(request, next_url),
        "is_single": has_single_sign_on(request.user),
        "is_local": request.user.has_usable_password(),
    }
    return render(request, "people/sign_in/confirm.html", context, status=status)
