"""A socket ends with the rights by which it was opened."""

import asyncio
from importlib import import_module
from itertools import count

import pytest
from asgiref.sync import sync_to_async
from channels.auth import AuthMiddlewareStack
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.routing import sockets
from fleet.live import consumer, guard, heart
from people.models import BrowserSession, User
from people.sign_in.access import ROLE_TAKEN, SIGNED_OUT, Access, lapsed
from tests import make

pytestmark = pytest.mark.django_db(transaction=True)
SessionStore = import_module(settings.SESSION_ENGINE).SessionStore


OFTEN = guard.EVERY_S


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch):
    monkeypatch.setattr(guard, "EVERY_S", 0.1)


def signed_in(user: User):
    session = SessionStore()
    session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session.create()
    return session


def somebody():
    cluster = make.a_cluster()
    user = make.a_user("ada", role="operator")
    make.give(user, "viewer", on=cluster)
    return user, signed_in(user)


async def a_socket(session) -> WebsocketCommunicator:
    cookie = f"{settings.SESSION_COOKIE_NAME}={session.session_key}".encode()
    socket = WebsocketCommunicator(
        AuthMiddlewareStack(URLRouter(sockets)), "/live/?topics=fleet", headers=[(b"cookie", cookie)]
    )
    await socket.connect()
    assert (await socket.receive_json_from(timeout=5))["type"] == "hello"
    return socket


async def end_of(socket: WebsocketCommunicator) -> tuple[int, str]:
    while (said := await socket.receive_output(timeout=5))["type"] == "websocket.send":
        pass
    return said["code"], said.get("reason", "")


def change_password(user: User) -> None:
    user.set_password("another long password")
    user.save()


def sign_out(user: User) -> None:
    BrowserSession.objects.all().delete()


def run_out(user: User) -> None:
    BrowserSession.objects.update(expire_date=timezone.now())


def switch_off(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def take_one(user: User) -> None:
    user.bindings.filter(role="operator").delete()


def take_all(user: User) -> None:
    user.bindings.all().delete()


def give_another_instead(user: User) -> None:
    user.bindings.filter(role="operator").update(role="approver")


CHANGES = [
    (sign_out, SIGNED_OUT),
    (run_out, SIGNED_OUT),
    (switch_off, SIGNED_OUT),
    (User.delete, SIGNED_OUT),
    (change_password, SIGNED_OUT),
    (take_one, ROLE_TAKEN),
    (take_all, ROLE_TAKEN),
    (give_another_instead, ROLE_TAKEN),
]


@pytest.mark.parametrize(("change", "why"), CHANGES)
async def test_what_ends_a_right_ends_the_socket(change, why):
    user, session = await sync_to_async(somebody)()
    socket = await a_socket(session)

    await sync_to_async(change)(user)

    assert await end_of(socket) == (consumer.SIGNED_OUT, why)
    await socket.disconnect()


async def two_looks(monkeypatch) -> None:
    """Wait until the guard has looked twice: the first may have begun before."""
    looks, second = count(1), asyncio.Event()
    loop = asyncio.get_running_loop()

    def look(accesses, *, now):
        if next(looks) > 2:
            loop.call_soon_threadsafe(second.set)
        return lapsed(accesses, now=now)

    monkeypatch.setattr(guard, "lapsed", look)
    await second.wait()


async def test_who_keeps_or_gets_a_role_goes_on_listening(monkeypatch):
    user, session = await sync_to_async(somebody)()
    socket = await a_socket(session)

    await sync_to_async(make.give)(user, "approver")
    await two_looks(monkeypatch)

    assert await socket.receive_nothing(timeout=0.2)
    await socket.disconnect()


async def test_a_database_that_is_away_ends_nothing_and_is_asked_again(monkeypatch):
    _, session = await sync_to_async(somebody)()
    socket = await a_socket(session)
    truly, asked = guard.lapsed, []

    def away_once(*given, **more):
        asked.append(1)
        if len(asked) == 1:
            raise ConnectionError("away")
        return truly(*given, **more)

    monkeypatch.setattr(guard, "lapsed", away_once)
    await sync_to_async(session.flush)()

    assert (await end_of(socket))[0] == consumer.SIGNED_OUT
    assert len(asked) > 1
    await socket.disconnect()


class Deaf:
    """What a socket is whose browser takes nothing, as far as the guard knows."""

    def __init__(self, access: Access, *, for_s: float) -> None:
        self.access, self.for_s, self.is_out = access, for_s, asyncio.Event()

    async def turn_out(self, reason: str) -> None:
        await asyncio.sleep(self.for_s)
        self.is_out.set()


async def test_who_takes_nothing_keeps_nobody_else_listening(monkeypatch):
    first, second = (Deaf(Access(pk, frozenset()), for_s=for_s) for pk, for_s in ((1, 3600), (2, 0)))
    gone, looked, loop = {first.access: "taken"}, asyncio.Event(), asyncio.get_running_loop()

    def look(accesses, *, now):
        loop.call_soon_threadsafe(looked.set)
        return {access: gone[access] for access in accesses if access in gone}

    monkeypatch.setattr(guard, "lapsed", look)
    watching = guard.Guard()
    watching.admit(first)
    watching.admit(second)
    await looked.wait()
    gone[second.access] = "taken"

    await asyncio.wait_for(second.is_out.wait(), 5)


async def test_a_socket_whose_browser_takes_nothing_is_left_all_the_same(monkeypatch):
    user, session = await sync_to_async(somebody)()
    socket = await a_socket(session)
    monkeypatch.setattr(consumer, "CLOSE_S", 0.1)
    monkeypatch.setattr(consumer.LiveConsumer, "close", lambda *_, **__: asyncio.sleep(3600))
    turned_out, truly = asyncio.Event(), consumer.LiveConsumer.turn_out

    async def turn_out(self, reason):
        await truly(self, reason)
        turned_out.set()

    monkeypatch.setattr(consumer.LiveConsumer, "turn_out", turn_out)
    await sync_to_async(sign_out)(user)
    await asyncio.wait_for(turned_out.wait(), 5)

    assert not any(get_channel_layer().groups.values())
    assert heart.heart()._listeners == 0
    await socket.disconnect()


def test_one_look_costs_the_same_for_any_number_of_sockets():
    def cost(number: int) -> int:
        accesses = [Access.of(user, signed_in(user)) for user in (make.a_user(role="viewer") for _ in range(number))]
        with CaptureQueriesContext(connection) as queries:
            assert lapsed(accesses, now=timezone.now()) == {}
        return len(queries)

    assert cost(1) == cost(30) == 3


def test_two_looks_fit_into_the_five_seconds_that_are_promised():
    assert 2 * OFTEN < 5
