"""The second factor of local accounts: an app with codes, and recovery codes. Passkeys need a browser."""

import re
import time
from datetime import timedelta

import pytest
import time_machine
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.core.cache import cache
from django.test import Client

from people.models import AuditEntry
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import Page, page, visiting

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
PATH = "/account/second-factors"


@pytest.fixture
def clock():
    cache.clear()  # where the library counts wrong codes
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


def somebody(name: str = "amy", role: str = "approver"):
    user = make.a_user(name, role=role)
    user.set_password(PASSWORD)
    user.save()
    return user


def code_of(secret: str) -> str:
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30))


def add_app(client: Client) -> tuple[str, list[str]]:
    """Sets an app up as a person does. Returns its secret and the recovery codes."""
    html = client.get(PATH).content.decode()
    assert Page(html)
    secret = re.search(r'<code class="mono">([A-Z2-7]{32})</code>', html)[1]
    added = client.post(f"{PATH}/app", {"code": code_of(secret)}).content.decode()
    assert Page(added)
    return secret, re.findall(r"\b\d{8}\b", added)


def password_given() -> Client:
    client = Client()
    answer = client.post("/sign-in", {"username": "amy", "password": PASSWORD, "next": "/plans"})
    assert answer["Location"] == "/sign-in/second-factor?next=%2Fplans"
    assert client.get("/plans").status_code == 302
    return client


def test_a_sign_in_asks_for_the_code_of_the_app(clock):
    user = somebody()
    secret, codes = add_app(visiting(user))
    clock.shift(timedelta(minutes=2))
    client = password_given()
    path = "/sign-in/second-factor"
    assert "The password is right." in page(client, path).text

    wrong = client.post(path, {"code": "000000", "next": "/plans"})
    assert (wrong.status_code, "This code or passkey is wrong." in wrong.content.decode()) == (400, True)
    right = client.post(path, {"code": code_of(secret), "next": "/plans"})
    assert right["Location"] == "/plans"
    assert client.get("/plans").status_code == 200
    assert len(set(codes)) == 10
    assert secret not in str(Authenticator.objects.get(type="totp").data)
    assert AuditEntry.objects.filter(verb="person.second-factor", actor="amy").exists()


def test_a_code_works_once(clock):
    secret, _ = add_app(visiting(somebody()))
    clock.shift(timedelta(minutes=2))
    first, second = password_given(), password_given()

    assert first.post("/sign-in/second-factor", {"code": code_of(secret)}).status_code == 302
    assert second.post("/sign-in/second-factor", {"code": code_of(secret)}).status_code == 400


def test_a_recovery_code_works_once_and_new_ones_replace_it(clock):
    client = visiting(somebody())
    _, codes = add_app(client)
    assert password_given().post("/sign-in/second-factor", {"code": codes[0]}).status_code == 302
    assert password_given().post("/sign-in/second-factor", {"code": codes[0]}).status_code == 400

    client.post(f"{PATH}/recovery-codes")

    assert password_given().post("/sign-in/second-factor", {"code": codes[1]}).status_code == 400


def test_the_password_counts_for_five_minutes_and_not_after_a_change(clock):
    user = somebody()
    _, codes = add_app(visiting(user))
    late, changed = password_given(), password_given()
    user.set_password("another long password")
    user.save()
    assert changed.post("/sign-in/second-factor", {"code": codes[0]})["Location"] == "/sign-in"

    clock.shift(timedelta(minutes=6))
    assert late.get("/sign-in/second-factor")["Location"] == "/sign-in"
    assert Client().get("/sign-in/second-factor")["Location"] == "/sign-in"


def test_guesses_of_codes_are_limited(clock):
    add_app(visiting(somebody()))
    client = password_given()

    answers = [client.post("/sign-in/second-factor", {"code": f"{number:06}"}) for number in range(25)]

    assert {answer.status_code for answer in answers} == {400}
    assert "Too many tries." in answers[-1].content.decode()


def test_rest_asks_for_the_code_too(clock):
    secret, _ = add_app(visiting(somebody()))
    clock.shift(timedelta(minutes=2))
    rest = calling()
    body = {"username": "amy", "password": PASSWORD}

    without = rest.post("/api/v1/session", body, format="json")
    wrong = rest.post("/api/v1/session", body | {"code": "000000"}, format="json")
    right = rest.post("/api/v1/session", body | {"code": code_of(secret)}, format="json")

    assert (without.status_code, wrong.status_code, right.status_code) == (401, 401, 200)
    assert "Send its code" in without.json()["detail"]


def test_a_step_up_takes_a_code_instead_of_the_password(clock):
    client = visiting(somebody())
    _, codes = add_app(client)
    clock.shift(timedelta(minutes=6))
    assert client.get(PATH)["Location"].startswith("/confirm")

    assert "Code of your app" in page(client, "/confirm").text
    assert client.post("/confirm", {"code": "1", "next": PATH}).status_code == 400
    assert client.post("/confirm", {"code": codes[0], "next": PATH})["Location"] == PATH
    assert client.get(PATH).status_code == 200


@pytest.mark.parametrize(
    "sent", ["", "{}", "[" * 5000, '{"id": 1}', '{"id": "AA", "response": {}}', "x" * 30_000, "null"]
)
def test_a_malformed_passkey_is_refused(clock, sent):
    client = visiting(somebody())
    add_app(client)

    assert client.post(f"{PATH}/passkeys", {"name": "Laptop", "credential": sent}).status_code == 400
    assert password_given().post("/sign-in/second-factor", {"credential": sent}).status_code == 400
    assert Authenticator.objects.filter(type="webauthn").count() == 0


def test_a_role_may_need_a_second_factor(clock, settings):
    settings.SECOND_FACTOR_ROLES = frozenset({"approver"})
    amy, bob = visiting(somebody()), visiting(somebody("bob", "viewer"))

    assert amy.get("/plans")["Location"] == PATH
    assert amy.get("/account").status_code == 200
    assert bob.get("/plans").status_code == 200
    refused = calling(amy.get("/account").wsgi_request.user).get("/api/v1/me")
    assert (refused.status_code, "second factor" in refused.json()["detail"]) == (403, True)
    add_app(amy)
    assert amy.get("/plans").status_code == 200


def test_an_admin_removes_the_factors_of_a_person_who_lost_them(clock):
    user = somebody()
    add_app(visiting(user))
    root = visiting(make.a_user("root", role="admin"))
    assert "Remove the second factors" in page(root, f"/people/{user.pk}").text

    root.post(f"/people/{user.pk}/second-factors/removals")

    assert not Authenticator.objects.exists()
    assert AuditEntry.objects.filter(verb="person.second-factor-removal", actor="root").exists()
    assert Client().post("/sign-in", {"username": "amy", "password": PASSWORD})["Location"] == "/"


def test_a_person_removes_a_factor_and_without_any_the_recovery_codes(clock):
    client = visiting(somebody())
    add_app(client)

    client.post(f"{PATH}/{Authenticator.objects.get(type='totp').pk}/removals")

    assert not Authenticator.objects.exists()
    assert "No second factor." in page(client, PATH).text
