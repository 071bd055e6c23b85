"""The page of a person's own account and API tokens."""

from datetime import timedelta

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from edges.requests import PersonRequest
from people.models import ApiToken
from people.models.api_token import USUAL_LIFE
from people.rights import OF_TOKENS, ROLES_FOR, Permission
from people.roster.accounts import issue, revoke
from people.roster.everybody import roles_of
from people.roster.sessions import SHOWN, end_sessions, sessions_of
from people.sign_in.step_up import require_recent_sign_in
from wording.numbers import count

DAYS = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"))


class TokenForm(forms.Form):
    name = forms.CharField(max_length=100, label="Purpose")
    days = forms.TypedChoiceField(choices=DAYS, coerce=int, initial=USUAL_LIFE.days, label="Valid for")
    permissions = forms.MultipleChoiceField(
        choices=[(permission.value, permission.value) for permission in OF_TOKENS],
        initial=[Permission.SEE.value],
        widget=forms.CheckboxSelectMultiple,
        label="Permissions",
    )


@never_cache
def account(request: PersonRequest) -> HttpResponse:
    return _page(request, TokenForm())


@never_cache
@require_POST
def issue_token(request: PersonRequest) -> HttpResponse:
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=400)
    require_recent_sign_in(request)
    cleaned = form.cleaned_data
    now = timezone.now()
    _, secret = issue(
        owner=request.user,
        actor=request.user.get_username(),
        name=cleaned["name"],
        permissions=cleaned["permissions"],
        now=now,
        expires_at=now + timedelta(days=cleaned["days"]),
    )
    return _page(request, TokenForm(), secret=secret)


@require_POST
def revoke_token(request: PersonRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user.pk)
    revoke(token, actor=request.user.get_username(), now=timezone.now())
    messages.success(request, f"The token “{token.name}” is revoked.")
    return redirect("account")


@require_POST
def end_session(request: PersonRequest, session_id: str) -> HttpResponse:
    named = sessions_of(request.user, now=timezone.now()).filter(public_id=session_id)
    end_sessions(request.user, named, actor=request.user.get_username(), now=timezone.now())
    messages.success(request, "The session is ended.")
    return redirect("account")


@require_POST
def end_other_sessions(request: PersonRequest) -> HttpResponse:
    others = sessions_of(request.user, now=timezone.now()).exclude(session_key=request.session.session_key)
    ended = end_sessions(request.user, others, actor=request.user.get_username(), now=timezone.now())
    messages.success(request, f"{count(ended, 'other session')} ended.")
    return redirect("account")


def _page(request: PersonRequest, form: TokenForm, *, secret: str = "", status: int = 200) -> HttpResponse:
    roles = roles_of(request.user)
    granted_roles = {item.binding.role for item in roles if item.place}
    context = {
        "form": form,
        "secret": secret,
        "roles": roles,
        "may_anything": bool(granted_roles),
        "permissions": [(item, not granted_roles.isdisjoint(ROLES_FOR[item])) for item in Permission],
        "tokens": ApiToken.objects.filter(user=request.user.pk, revoked_at__isnull=True).order_by("-created_at"),
        "sessions": sessions_of(request.user, now=timezone.now())[:SHOWN],
        "this_session": request.session.session_key,
        "now": timezone.now(),
    }
    return render(request, "people/account/page.html", context, status=status)
