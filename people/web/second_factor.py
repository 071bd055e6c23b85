"""Second factors: the page that asks for one after the password, and the page on which a person sets them up."""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.webauthn.forms import AddWebAuthnForm
from allauth.mfa.webauthn.internal import auth as passkeys
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME, login
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from edges.requests import PersonRequest
from people.models import User
from people.roster import second_factors
from people.roster.second_factors import factors_of
from people.sign_in.second_factor import (
    LONGEST_CREDENTIAL,
    NEEDED,
    WRONG,
    has_second_factor,
    lacks_second_factor,
    note_second_factor,
    why_wrong,
)
from people.sign_in.step_up import require_recent_sign_in
from people.web.return_pages import own_page

PENDING = "pending_sign_in"  # in the session: the password was right
PENDING_FOR = timedelta(minutes=5)
BACKEND = "django.contrib.auth.backends.ModelBackend"
LONGEST_NAME = 60  # characters of a passkey's name
OPEN_PAGES = frozenset({"sign-out", "confirm", "account", "second-factors"})


class SecondFactorFirst:
    """Redirects a person whose role needs a second factor to the page that sets one up."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Costs no query: `NoRole` loaded the roles. REST refuses in its authentication."""
        match = request.resolver_match
        name = match.url_name if match else None
        if not settings.SECOND_FACTOR_ROLES or request.path.startswith("/api/") or name in OPEN_PAGES:
            return None
        if request.path.startswith("/account/") or not isinstance(request.user, User):
            return None
        if not lacks_second_factor(request.user, request.session):
            return None
        messages.error(request, NEEDED)
        return redirect("second-factors")


def begin(request: HttpRequest, user: User, *, next_url: str) -> HttpResponse:
    """Redirects to the page that asks for the second factor. The person is not signed in yet."""
    at = timezone.now().timestamp()
    request.session[PENDING] = {"user": user.pk, "hash": user.get_session_auth_hash(), "at": at}
    return redirect(f"{reverse('ask-second-factor')}?{urlencode({REDIRECT_FIELD_NAME: next_url})}")


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
def ask(request: HttpRequest) -> HttpResponse:
    """Asks for the second factor, and signs in."""
    user = _pending_user(request)
    if user is None:
        messages.error(request, "This sign-in began more than 5 minutes ago. Sign in again.")
        return redirect("sign-in")
    next_url = own_page(request, request.POST.get(REDIRECT_FIELD_NAME) or request.GET.get(REDIRECT_FIELD_NAME, ""))
    problem = why_wrong(request, user, request.POST.dict(), now=timezone.now()) if request.method == "POST" else ""
    if request.method == "GET" or problem:
        context = {"next": next_url, "problem": problem, **ways_of(user)}
        return render(request, "people/sign_in/second_factor.html", context, status=400 if problem else 200)
    del request.session[PENDING]
    login(request, user, backend=BACKEND)
    note_second_factor(request.session)
    return redirect(next_url or settings.LOGIN_REDIRECT_URL)


def ways_of(user: User) -> dict[str, Any]:
    """Returns the data of the form: whether the person has an app, and the challenge for passkeys."""
    kinds = set(factors_of(user).values_list("type", flat=True))
    has_passkey = Authenticator.Type.WEBAUTHN in kinds
    options = json.dumps(passkeys.begin_authentication(user), cls=DjangoJSONEncoder) if has_passkey else ""
    return {"has_factor": bool(kinds), "has_app": Authenticator.Type.TOTP in kinds, "passkey_options": options}


@never_cache
@require_GET
def factors(request: PersonRequest) -> HttpResponse:
    require_recent_sign_in(request)
    return _page(request)


@never_cache
@require_POST
def add_app(request: PersonRequest) -> HttpResponse:
    require_recent_sign_in(request)
    _only_local(request)
    form = ActivateTOTPForm(request.POST, user=request.user)
    if not form.is_valid():
        return _page(request, app_problem=WRONG, app_secret=form.secret, status=400)
    second_factors.add_app(request.user, form.secret, now=timezone.now())
    return _added(request, "The app is your second factor now.")


@never_cache
@require_POST
def add_passkey(request: PersonRequest) -> HttpResponse:
    require_recent_sign_in(request)
    _only_local(request)
    form = AddWebAuthnForm(request.POST, user=request.user)
    try:
        is_valid = len(request.POST.get("credential", "")) <= LONGEST_CREDENTIAL and form.is_valid()
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):  # of a malformed answer
        is_valid = False
    if not is_valid:
        return _page(request, passkey_problem="The browser sent no valid passkey. Try again.", status=400)
    name = form.cleaned_data["name"][:LONGEST_NAME]
    second_factors.add_passkey(request.user, name, form.cleaned_data["credential"], now=timezone.now())
    return _added(request, f"The passkey “{name}” is your second factor now.")


@require_POST
def remove(request: PersonRequest, factor_id: int) -> HttpResponse:
    require_recent_sign_in(request)
    factor = get_object_or_404(factors_of(request.user), pk=factor_id)
    named = factors_of(request.user).filter(pk=factor.pk)
    second_factors.remove(request.user, named, actor=request.user.username, now=timezone.now())
    messages.success(request, "The second factor is removed.")
    return redirect("second-factors")


@never_cache
@require_POST
def renew_codes(request: PersonRequest) -> HttpResponse:
    require_recent_sign_in(request)
    if not has_second_factor(request.user):
        return redirect("second-factors")
    return _page(request, codes=second_factors.renew_recovery_codes(request.user, now=timezone.now()))


def _added(request: PersonRequest, message: str) -> HttpResponse:
    """Shows the recovery codes after the first factor."""
    note_second_factor(request.session)
    messages.success(request, message)
    if Authenticator.objects.filter(user=request.user, type=Authenticator.Type.RECOVERY_CODES).exists():
        return redirect("second-factors")
    return _page(request, codes=second_factors.renew_recovery_codes(request.user, now=timezone.now()))


def _pending_user(request: HttpRequest) -> User | None:
    """Returns the person whose password was right, unless it was changed or too long ago."""
    pending = request.session.get(PENDING)
    if not pending or timezone.now() - datetime.fromtimestamp(pending["at"], UTC) > PENDING_FOR:
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    return user if user and constant_time_compare(pending["hash"], user.get_session_auth_hash()) else None


def _only_local(request: PersonRequest) -> None:
    if not request.user.has_usable_password():
        raise PermissionDenied("You sign in at the identity provider. It asks for your second factor.")


def _page(
    request: PersonRequest,
    *,
    codes: list[str] | None = None,
    app_secret: str = "",
    app_problem: str = "",
    passkey_problem: str = "",
    status: int = 200,
) -> HttpResponse:
    user, is_local = request.user, request.user.has_usable_password()
    secret = app_secret or (ActivateTOTPForm(user=user).secret if is_local else "")
    picture = get_adapter().build_totp_svg(get_adapter().build_totp_url(user, secret)) if secret else ""
    context = {
        "is_local": is_local,
        "factors": [(item, item.wrap()) for item in factors_of(user)],
        "codes": codes,
        "secret": secret,
        "picture": b64encode(picture.encode()).decode(),
        "app_problem": app_problem,
        "passkey_problem": passkey_problem,
        "passkey_options": json.dumps(passkeys.begin_registration(user, passwordless=False), cls=DjangoJSONEncoder),
    }
    return render(request, "people/account/second_factors.html", context, status=status)
