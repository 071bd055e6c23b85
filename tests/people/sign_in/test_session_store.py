"""A session has the columns by which its person recognizes it."""

from datetime import timedelta

import pytest
import time_machine
from django.test import Client, RequestFactory

from people.models import BrowserSession
from people.sign_in.session_store import browser_of
from tests import make

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19 like Mac OS X) Version/19.0 Safari/604.1", "Safari on iOS"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("x" * 500, "x" * 60),
        ("\x00<b>", "<b>"),
        ("", ""),
    ],
)
def test_a_browser_has_a_name(sent, name):
    assert browser_of(RequestFactory().get("/", headers={"User-Agent": sent})) == name


def test_a_sign_in_notes_where_and_when(settings):
    user = make.a_user("ada", role="viewer")
    user.set_password("a long password")
    user.save()
    client = Client(headers={"User-Agent": FIREFOX}, REMOTE_ADDR="192.0.2.7")

    with time_machine.travel(make.NOON, tick=False):
        client.post("/sign-in", {"username": "ada", "password": "a long password"})

    session = BrowserSession.objects.get()
    assert (session.user, session.browser, session.address) == (user, "Firefox on Linux", "192.0.2.7")
    assert session.signed_in_at == make.NOON
    assert session.public_id not in session.session_key
    assert session.session_key not in session.public_id


def test_the_last_use_is_written_once_a_minute(django_assert_num_queries):
    with time_machine.travel(make.NOON, tick=False) as clock:
        client = Client()
        client.force_login(make.a_user("ada", role="viewer"))
        clock.shift(timedelta(seconds=59))
        client.get("/account")
        assert BrowserSession.objects.get().last_used_at == make.NOON

        clock.shift(timedelta(seconds=2))
        client.get("/account")
        assert BrowserSession.objects.get().last_used_at == make.NOON + timedelta(seconds=61)
