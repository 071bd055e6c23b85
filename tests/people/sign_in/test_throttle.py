"""Guessing is slow however a name is spelled, wherever it is tried, and nobody locks another out by it."""

from datetime import timedelta
from threading import Event, Thread

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection
from django.db.models import QuerySet
from django.test import Client
from rest_framework.test import APIClient

from demo.visitor import wait_until
from fleet.retention import tidy
from people.models import SignInTries, User
from people.sign_in import throttle
from people.sign_in.throttle import TRIES, TRIES_OF_AN_ADDRESS, WINDOW, WRONG_TOKENS
from tests.locks import one_waits
from tests.make import NOON, a_token, a_user
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]
PASSWORD = "correct horse battery"
GUESS = "guess"
SPELLINGS = ["ada", " ada", "ada ", "ada\t", "\u3000ada", "ａｄａ", "ａda", "\u00a0ada\u2003", " " * 200 + "ada"]


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada", password=PASSWORD)


def on_page(name: str = "ada", password: str = GUESS, *, at: str = "192.0.2.1"):
    return Client(REMOTE_ADDR=at).post("/sign-in", {"username": name, "password": password})


def by_rest(name: str = "ada", password: str = GUESS, *, at: str = "192.0.2.1"):
    asked = {"username": name, "password": password}
    return APIClient(REMOTE_ADDR=at).post("/api/v1/session", asked, format="json")


def by_token(secret: str, *, at: str = "192.0.2.1"):
    return APIClient(REMOTE_ADDR=at).get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"})


@pytest.mark.parametrize("sign_in", [on_page, by_rest])
def test_every_spelling_of_a_name_is_that_name(ada, sign_in):
    for number in range(TRIES):
        sign_in(SPELLINGS[number % len(SPELLINGS)])

    assert [sign_in(name, PASSWORD).status_code for name in SPELLINGS] == [429] * len(SPELLINGS)


@pytest.mark.parametrize("sign_in", [on_page, by_rest])
def test_a_spelling_that_is_counted_is_one_that_gets_in(ada, sign_in):
    assert {sign_in(name, PASSWORD).status_code for name in SPELLINGS} <= {200, 302}


def test_pages_and_rest_count_together(ada):
    for _ in range(TRIES // 2):
        on_page()
        by_rest()

    assert (on_page(password=PASSWORD).status_code, by_rest(password=PASSWORD).status_code) == (429, 429)


def test_who_has_to_wait_does_not_write_their_name_again(ada):
    for _ in range(TRIES):
        on_page()

    shown = on_page("ada").content.decode()

    assert 'autofocus value="ada"' in shown


@pytest.mark.nightly
def test_no_number_of_other_tries_pushes_a_name_out(ada):
    for _ in range(TRIES):
        on_page()
    for number in range(400):
        throttle._count(throttle.Budget(f"other-{number}", TRIES), now=NOON)

    assert on_page(password=PASSWORD).status_code == 429


def test_an_attack_from_elsewhere_does_not_keep_the_engineer_out(ada):
    for _ in range(TRIES + 5):
        on_page(at="198.51.100.66")

    assert on_page(password=PASSWORD, at="192.0.2.1").status_code == 302


@pytest.mark.nightly
def test_an_address_has_a_budget_of_its_own(ada):
    for number in range(TRIES_OF_AN_ADDRESS):
        throttle.count_password(Client(REMOTE_ADDR="192.0.2.1").get("/sign-in").wsgi_request, f"n{number}", now=NOON)

    assert on_page(password=PASSWORD).status_code == 429
    assert on_page(password=PASSWORD, at="192.0.2.2").status_code == 302


def test_one_who_hammers_at_a_name_does_not_use_up_the_address(ada):
    """Behind one address sits an office."""
    for _ in range(TRIES_OF_AN_ADDRESS + 5):
        on_page("bob")

    assert on_page(password=PASSWORD).status_code == 302


@pytest.mark.parametrize("sign_in", [on_page, by_rest])
def test_how_long_to_wait_is_said_and_is_true(ada, sign_in, now):
    for _ in range(TRIES):
        sign_in()

    slowed = sign_in(password=PASSWORD)
    SignInTries.objects.update(until=NOON)

    assert slowed.status_code == 429
    assert slowed["Retry-After"] == str(int(WINDOW.total_seconds()))
    assert sign_in(password=PASSWORD).status_code in {200, 302}


def test_waiting_out_a_window_is_not_made_longer_by_trying():
    request = Client().get("/sign-in").wsgi_request
    for _ in range(TRIES):
        throttle.count_password(request, "ada", now=NOON)
    later = NOON + WINDOW - timedelta(seconds=1)

    assert throttle.count_password(request, "ada", now=later) == timedelta(seconds=1)
    assert throttle.count_password(request, "ada", now=NOON + WINDOW) is None


def test_the_right_password_is_no_guess(ada):
    for _ in range(3):
        for _ in range(TRIES - 1):
            on_page()
        assert on_page(password=PASSWORD).status_code == 302


def test_wrong_tokens_wait_and_a_right_one_never_does(ada):
    secret = a_token(ada)
    replies = [by_token("qd_wrong").status_code for _ in range(WRONG_TOKENS + 1)]

    assert replies == [401] * WRONG_TOKENS + [429]
    assert by_token(secret).status_code == 200
    assert on_page(password=PASSWORD).status_code == 302


@pytest.mark.parametrize("sign_in", [on_page, by_rest])
@pytest.mark.parametrize("who", ["ada", "nobody", "switched-off", "invited"])
def test_every_name_costs_one_hash(ada, settings, monkeypatch, sign_in, who):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    monkeypatch.setattr(PBKDF2PasswordHasher, "iterations", 1)  # how many are counted, not what one costs
    for name in ("ada", "switched-off"):
        User.objects.update_or_create(username=name, defaults={"is_active": name == "ada"})[0].set_password(PASSWORD)
    for user in User.objects.all():
        user.set_password(PASSWORD)
        user.save()
    invited = a_user("invited")
    invited.set_unusable_password()
    invited.save()
    hashes = []
    truly = PBKDF2PasswordHasher.encode
    monkeypatch.setattr(
        PBKDF2PasswordHasher, "encode", lambda *given, **more: hashes.append(1) or truly(*given, **more)
    )

    sign_in(who)

    assert len(hashes) == 1


def test_what_is_counted_is_kept_without_names_and_goes(ada):
    on_page()

    assert "ada" not in str(list(SignInTries.objects.values()))
    tidy(now=NOON + timedelta(hours=1))
    assert not SignInTries.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_try_is_counted_while_another_of_the_same_name_gets_in(ada, monkeypatch):
    """Who gets in has the tries of that name forgotten."""
    on_page()
    is_through, write = Event(), QuerySet.bulk_create

    def forget() -> None:
        try:
            SignInTries.objects.all().delete()
        finally:
            is_through.set()
            connection.close()

    other = Thread(target=forget)

    def as_it_is_forgotten(*given, **named):
        written = write(*given, **named)
        if other.ident is None:
            other.start()
            if connection.vendor == "postgresql":  # SQLite has one writer
                wait_until(lambda: one_waits() or is_through.is_set(), what="who forgets", timeout_s=PATIENCE_S)
        return written

    monkeypatch.setattr(QuerySet, "bulk_create", as_it_is_forgotten)
    answer = on_page()
    other.join()

    assert answer.status_code == 200
