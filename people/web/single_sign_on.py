"""Sign-in at the identity provider: the way there, and the return."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from people.models import User
from people.roster.accounts import LastAdmin, NameTaken
from people.roster.mapped_people import ProviderIdentity, admit
from people.roster.sessions import end_at_provider
from people.sign_in.group_roles import roles_in
from people.sign_in.second_factor import note_second_factor
from people.sign_in.session_store import note_provider_session
from people.sign_in.single_sign_on import (
    LEEWAY_S,
    LOGOUT_WITHIN,
    PROVIDER,
    SignInRefused,
    authenticated_at,
    claims_of,
    logout_claims_of,
    redirect_to_provider,
)
from people.sign_in.step_up import confirm_session, is_recent
from people.sign_in.throttle import count_logout, count_redirect, is_first_use
from people.web.return_pages import own_page

LONGEST_TOKEN = 16_000  # characters of a logout token
LONGEST_SUBJECT = 191  # characters; OpenID Connect allows 255, and known providers send at most 100


@login_not_required
@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    _require_provider(PROVIDER)
    if wait := count_redirect(request, now=timezone.now()):
        too_many = SignInRefused(f"Too many tries. Wait {ceil(wait.total_seconds())} s, then try again.", 429)
        return _refuse(request, too_many)
    try:
        next_url, confirms = own_page(request, request.GET.get("next", "")), request.GET.get("confirm") == "1"
        return redirect_to_provider(request, next_url=next_url, confirms=confirms)
    except SignInRefused as refusal:
        return _refuse(request, refusal)


@login_not_required
@never_cache
@require_GET
def finish(request: HttpRequest, provider_id: str) -> HttpResponse:
    _require_provider(provider_id)
    try:
        claims, state = claims_of(request)
        person, at = _admitted(claims), authenticated_at(claims)
        if state["confirms"]:
            _require_same_person(request, person, at)
    except SignInRefused as refusal:
        return _refuse(request, refusal)
    if not state["confirms"]:
        login(request, person, backend="django.contrib.auth.backends.ModelBackend")
        note_provider_session(request.session, claims.get("sid"))
        note_second_factor(request.session)
    confirm_session(request.session, at=at)
    return redirect(own_page(request, state.get("next") or "") or settings.LOGIN_REDIRECT_URL)


@login_not_required
@csrf_exempt
@never_cache
@require_POST
def end_at_logout(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Ends the sessions that a logout token names. The identity provider calls this, not a browser."""
    _require_provider(provider_id)
    now = timezone.now()
    if wait := count_logout(request, now=now):
        return HttpResponse(status=429, headers={"Retry-After": str(ceil(wait.total_seconds()))})
    try:
        claims = _logout_claims(request, now=now)
    except SignInRefused as refusal:
        status = refusal.status if refusal.status == 503 else 400
        return JsonResponse({"error": "invalid_request", "error_description": str(refusal)}, status=status)
    end_at_provider(settings.OIDC.issuer, claims.get("sub"), claims.get("sid") or None, now=now)
    return HttpResponse()


def _logout_claims(request: HttpRequest, *, now: datetime) -> dict[str, Any]:
    """Returns the claims of a logout token that was not used before.

    :raises SignInRefused: when the token is missing, invalid or used
    """
    token = request.POST.get("logout_token", "")
    if not token or len(token) > LONGEST_TOKEN:
        raise SignInRefused("The field “logout_token” is missing or too long.")
    claims = logout_claims_of(request, token)
    if not is_first_use(claims["jti"], within=LOGOUT_WITHIN + timedelta(seconds=LEEWAY_S), now=now):
        raise SignInRefused("This logout token was used before.")
    return claims


def _require_same_person(request: HttpRequest, person: User, at: datetime | None) -> None:
    """Refuses a step-up of another person, or without a new sign-in at the provider. The session goes on.

    :raises SignInRefused: with the reason
    """
    if request.user != person:
        raise SignInRefused(
            f"You signed in as {person.username}, but this session is another person's. Sign out first."
        )
    if not is_recent(at):
        raise SignInRefused(
            "The identity provider sent no recent “auth_time”, so it did not ask you again. Ask its admin to send it."
        )


def _admitted(claims: Mapping[str, Any]) -> User:
    """Returns the person behind the claims, with the roles of their groups.

    :raises SignInRefused: when they have no role, no usable name, or are switched off
    """
    subject, name = str(claims["sub"]), claims.get(settings.OIDC.name_claim)
    if not isinstance(name, str) or not name or len(subject) > LONGEST_SUBJECT:
        raise SignInRefused(f"The identity provider sent no name in “{settings.OIDC.name_claim}”. Ask its admin.")
    roles = roles_in(claims)
    try:
        person = admit(ProviderIdentity(settings.OIDC.issuer, subject, name), roles, now=timezone.now())
    except NameTaken as error:
        raise SignInRefused(
            f"A local account has the name {name}. Ask an admin to rename your account at the identity provider, "
            "or to give the local account another name."
        ) from error
    except ValidationError as error:
        raise SignInRefused(f"The name {name[:150]} cannot be used here. {' '.join(error.messages)}") from error
    except LastAdmin as error:
        raise SignInRefused(str(error)) from error
    if person is None or not roles:
        raise SignInRefused("None of your groups has a role here. Ask an admin of Quarterdeck which group you need.")
    if not person.is_active:
        raise SignInRefused("Your account is switched off. Ask an admin of Quarterdeck.")
    return person


def _require_provider(provider_id: str) -> None:
    if not settings.OIDC.is_on or provider_id != PROVIDER:
        raise Http404


def _refuse(request: HttpRequest, refusal: SignInRefused) -> HttpResponse:
    return render(request, "people/sign_in/refused.html", {"sentence": str(refusal)}, status=refusal.status)
