"""Sign-in at an identity provider by OpenID Connect: the redirect there, and the verified claims of who returns.

django-allauth keeps the state, adds PKCE and exchanges the code. This module checks the ID token itself: allauth
checks no signature of a token that it fetched, and sends no nonce.
"""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import jwt
import structlog
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.internal import statekit
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from requests import RequestException, Session

log = structlog.get_logger(__name__)

PROVIDER = "sso"
# Asymmetric only: with the public key as a shared secret, anybody could sign.
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
LEEWAY_S = 60  # between the clocks
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT_WITHIN = timedelta(minutes=5)  # after its `iat`, a logout token is valid this long, once
NO_ANSWER = "The identity provider does not answer. Try again later, or ask an admin for a local account."
AGAIN = "Sign in again. If it happens again, ask an admin."


class SignInRefused(Exception):
    """The refusal of a sign-in. Its text is one sentence for the person."""

    def __init__(self, sentence: str, status: int = 403) -> None:
        super().__init__(sentence)
        self.status = status


class AccountAdapter(DefaultSocialAccountAdapter):
    """The HTTP client for the provider, with the company's certificates."""

    def get_requests_session(self) -> Session:
        session: Session = super().get_requests_session()
        if settings.OIDC.ca_file:
            # By argument: variables of `requests` would override the attribute of the session.
            session.request = partial(session.request, verify=settings.OIDC.ca_file)  # type: ignore[method-assign]
        return session


def redirect_to_provider(request: HttpRequest, *, next_url: str, confirms: bool = False) -> HttpResponse:
    """Sends the person to the provider, with state, nonce and PKCE. `confirms`: the provider must ask them again.

    :raises SignInRefused: when the provider does not answer as one
    """
    nonce = secrets.token_urlsafe(32)
    # `max_age` makes `auth_time` a required claim (OpenID Connect Core 1.0, section 2).
    asked = {"nonce": nonce} | ({"prompt": "login", "max_age": "0"} if confirms else {})
    with _failures_as_refusals():
        adapter = OpenIDConnectOAuth2Adapter(request, PROVIDER)
        _require_issuer(adapter)
        response: HttpResponse = adapter.get_provider().redirect(
            request, process="login", next_url=next_url, auth_params=asked, nonce=nonce, confirms=confirms
        )
    return response


def claims_of(request: HttpRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the verified claims of a person who returns, and the state of `redirect_to_provider`.

    :raises SignInRefused: when anything about the answer is wrong
    """
    adapter = OpenIDConnectOAuth2Adapter(request, PROVIDER)
    state = statekit.unstash_state(request, provider_id=PROVIDER, state_id=request.GET.get("state", ""))
    if state is None:
        raise SignInRefused(f"This sign-in began more than 10 minutes ago, or in another browser. {AGAIN}", 400)
    if "code" not in request.GET:
        raise SignInRefused(f"The identity provider refused: {request.GET.get('error', 'no code')[:100]}. {AGAIN}")
    with _failures_as_refusals():
        _require_issuer(adapter)
        app = adapter.get_provider().app
        answer = adapter.get_access_token_data(
            request, app, adapter.get_client(request, app), pkce_code_verifier=state["pkce_code_verifier"]
        )
        claims = _verified(str(answer.get("id_token", "")), adapter)
        if not constant_time_compare(str(claims.get("nonce", "")), state["nonce"]):
            raise _refused("nonce")
        if not _wanted_names() <= claims.keys() and adapter.openid_config.get("userinfo_endpoint"):
            claims = _user_info(answer["access_token"], adapter, of=claims["sub"]) | claims
    return claims, state


def authenticated_at(claims: Mapping[str, Any]) -> datetime | None:
    """Returns when the provider last asked the person. None: it did not send a valid time."""
    at = claims.get("auth_time")
    if type(at) is not int or not 0 < at <= timezone.now().timestamp() + LEEWAY_S:
        return None
    return datetime.fromtimestamp(at, UTC)


def _wanted_names() -> set[str]:
    return {settings.OIDC.name_claim, settings.OIDC.groups_claim.partition(".")[0]}


def _user_info(access_token: str, adapter: OpenIDConnectOAuth2Adapter, *, of: str) -> dict[str, Any]:
    """Returns the claims that the provider keeps out of the ID token."""
    with get_adapter().get_requests_session() as session:
        answer = session.get(adapter.profile_url, headers={"Authorization": f"Bearer {access_token}"})
        answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    if found["sub"] != of:
        raise _refused("subject of the userinfo")
    return found


def _require_issuer(adapter: OpenIDConnectOAuth2Adapter) -> None:
    if str(adapter.openid_config["issuer"]).rstrip("/") != settings.OIDC.issuer:
        raise _refused("issuer of the discovery document")


def logout_claims_of(request: HttpRequest, token: str) -> dict[str, Any]:
    """Returns the verified claims of a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.6).

    :raises SignInRefused: when anything about the token is wrong
    """
    adapter = OpenIDConnectOAuth2Adapter(request, PROVIDER)
    with _failures_as_refusals():
        _require_issuer(adapter)
        claims = _decoded(token, adapter, ["iat", "iss", "aud", "jti", "events"])
    is_event = isinstance(claims["events"], dict) and isinstance(claims["events"].get(LOGOUT_EVENT), dict)
    if not is_event or "nonce" in claims:
        raise _refused("events of the logout token")
    named = claims.get("sid") or claims.get("sub")
    if not named or not isinstance(named, str) or not isinstance(claims["jti"], str):
        raise _refused("subject of the logout token")
    if timezone.now().timestamp() - int(claims["iat"]) > LOGOUT_WITHIN.total_seconds():
        raise _refused("time of the logout token")
    return claims


def _verified(token: str, adapter: OpenIDConnectOAuth2Adapter) -> dict[str, Any]:
    """Returns the claims of an ID token."""
    claims = _decoded(token, adapter, ["exp", "iat", "iss", "aud", "sub"])
    if claims.get("azp", settings.OIDC.client_id) != settings.OIDC.client_id:
        raise jwt.InvalidAudienceError("azp is another client")
    return claims


def _decoded(token: str, adapter: OpenIDConnectOAuth2Adapter, required: list[str]) -> dict[str, Any]:
    """Returns the claims of a signed token. The keys are fetched each time, so that rotated ones are known."""
    with get_adapter().get_requests_session() as session:
        answer = session.get(adapter.openid_config["jwks_uri"])
        answer.raise_for_status()
    keys = jwt.PyJWKSet.from_dict(answer.json()).keys
    key_id = jwt.get_unverified_header(token).get("kid")
    found = [key for key in keys if key.key_id == key_id] if key_id else keys
    if not found:
        raise jwt.InvalidKeyError(f"no key {key_id}")
    claims: dict[str, Any] = jwt.decode(
        token,
        key=found[0],
        algorithms=ALGORITHMS,
        issuer=adapter.openid_config["issuer"],
        audience=settings.OIDC.client_id,
        leeway=LEEWAY_S,
        options={"require": required},
    )
    return claims


@contextmanager
def _failures_as_refusals() -> Iterator[None]:
    try:
        yield
    except RequestException as error:
        log.warning("identity provider does not answer", error=type(error).__name__)
        raise SignInRefused(NO_ANSWER, 503) from error
    except OAuth2Error as error:
        raise _refused("answer to the code") from error
    except jwt.PyJWTError as error:
        raise _refused(f"signed token ({type(error).__name__})") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise _refused("discovery document or keys") from error


def _refused(what: str) -> SignInRefused:
    log.warning("sign-in refused", wrong=what)
    return SignInRefused(f"The identity provider's answer is invalid: {what}. {AGAIN}")
