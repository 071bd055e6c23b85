"""A logout at the identity provider ends the sessions that it began (OpenID Connect Back-Channel Logout 1.0)."""

import time
from typing import Any

import jwt
import pytest
from django.test import Client
from oidc_provider_mock._storage import storage

from people.models import AuditEntry, User
from people.sign_in.single_sign_on import LOGOUT_EVENT
from tests.people.sign_in.test_single_sign_on import ADA, Provider, provider, sign_in  # noqa: F401 (a fixture)

pytestmark = pytest.mark.django_db
PATH = "/sign-in/sso/logout"


def key_of(provider: Provider) -> Any:  # noqa: F811
    """The signing key of the provider in the thread, which has no logout of its own."""
    with provider.app.test_request_context():
        provider.app.preprocess_request()
        return jwt.PyJWK(storage.jwk.as_dict(is_private=True) | {"alg": "RS256"})


def logout_token(provider: Provider, *, key: Any = None, algorithm: str = "RS256", **changed: Any) -> str:  # noqa: F811
    now = int(time.time())
    claims = {
        "iss": provider.address, "aud": "quarterdeck", "iat": now, "exp": now + 120, "jti": "j-1", "sub": "s-1",
        "events": {LOGOUT_EVENT: {}},
    } | changed  # fmt: skip
    claims = {name: value for name, value in claims.items() if value is not None}
    if algorithm == "none":
        return jwt.encode(claims, None, algorithm="none")
    return jwt.encode(claims, key or key_of(provider).key, algorithm=algorithm)


def log_out(token: str, client: Client | None = None) -> Any:
    return (client or Client(enforce_csrf_checks=True)).post(PATH, {"logout_token": token})


def is_in(client: Client) -> bool:
    return client.get("/api/v1/me").status_code == 200


def test_the_sessions_of_a_subject_end_and_their_cookie_opens_nothing(provider, client):  # noqa: F811
    sign_in(client)
    second = Client()
    sign_in(second)
    provider.account("s-2", **ADA | {"preferred_username": "bob"})
    bob = Client()
    sign_in(bob, "s-2")
    cookie = client.cookies["sessionid"].value

    answer = log_out(logout_token(provider))

    assert (answer.status_code, answer["Cache-Control"].count("no-store")) == (200, 1)
    assert (is_in(client), is_in(second), is_in(bob)) == (False, False, True)
    replayed = Client()
    replayed.cookies["sessionid"] = cookie
    assert not is_in(replayed)
    ended = AuditEntry.objects.get(verb="session.end")
    assert (ended.actor, ended.evidence) == ("single sign-on", {"person": "ada", "sessions": 2})


def test_a_session_id_ends_that_session_alone(provider, client, monkeypatch):  # noqa: F811
    second = Client()
    for number, browser in enumerate([client, second]):
        provider.account("s-1", **ADA, sid=f"sid-{number}")
        sign_in(browser)

    assert log_out(logout_token(provider, sub=None, sid="sid-1")).status_code == 200
    assert (is_in(client), is_in(second)) == (True, False)
    assert log_out(logout_token(provider, jti="j-2", sub="s-2", sid="sid-0")).status_code == 200
    assert is_in(client)


@pytest.mark.parametrize(
    "changed",
    [
        {"events": None},
        {"events": {"https://example.com/other": {}}},
        {"events": {LOGOUT_EVENT: "yes"}},
        {"events": [LOGOUT_EVENT]},
        {"nonce": "n"},
        {"iss": "https://evil.example.com"},
        {"aud": "another"},
        {"iat": None},
        {"iat": int(time.time()) - 3600, "exp": None},
        {"exp": int(time.time()) - 3600},
        {"jti": None},
        {"jti": 7},
        {"sub": None},
        {"sub": 7},
        {"sub": "", "sid": ""},
        {"key": "a shared secret that is long enough to sign", "algorithm": "HS256"},
        {"algorithm": "none"},
    ],
)
def test_an_invalid_token_ends_nothing(provider, client, changed):  # noqa: F811
    sign_in(client)

    answer = log_out(logout_token(provider, **changed))

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert is_in(client)


def test_an_id_token_and_a_missing_token_are_refused(provider, client):  # noqa: F811
    sign_in(client)

    assert log_out(logout_token(provider, events=None, jti=None, nonce="n")).status_code == 400
    assert [log_out(text).status_code for text in ("", "x", "a.b.c", "x" * 20_000)] == [400] * 4
    assert is_in(client)


def test_a_token_is_used_once(provider, client):  # noqa: F811
    sign_in(client)
    token = logout_token(provider)
    assert log_out(token).status_code == 200
    sign_in(client)

    replayed = log_out(token)

    assert (replayed.status_code, "used before" in replayed.json()["error_description"]) == (400, True)
    assert is_in(client)


def test_a_logout_of_an_unknown_subject_is_no_error(provider):  # noqa: F811
    assert log_out(logout_token(provider)).status_code == 200
    assert not User.objects.exists()


def test_the_provider_may_be_down_and_floods_are_refused(provider, monkeypatch):  # noqa: F811
    token = logout_token(provider)
    provider.alter_answer = lambda path, said: {} if path == "/jwks" else said
    assert log_out(token).status_code == 400

    monkeypatch.setattr("people.sign_in.throttle.LOGOUTS", 1)
    assert log_out(token).status_code == 429


def test_without_a_provider_there_is_no_logout(client):
    assert log_out("x", client).status_code == 404
