"""The socket as a browser has it. Each person is made before the first connection: the consumer has its own thread."""

import asyncio
from typing import Self

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser
from django.utils import timezone

from config.routing import sockets
from fleet.live import consumer, heart
from fleet.models import Observer
from tests import make
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]
make_row = sync_to_async


class Browser:
    """One connection; leaves when the test ends."""

    def __init__(self, user, topics: str) -> None:
        self.socket = WebsocketCommunicator(URLRouter(sockets), f"/live/?topics={topics}")
        self.socket.scope["user"] = user

    async def __aenter__(self) -> Self:
        await self.socket.connect()
        return self

    async def __aexit__(self, *_) -> None:
        await self.socket.disconnect()

    async def hears(self) -> dict:
        return await self.socket.receive_json_from(timeout=PATIENCE_S)

    async def closed_with(self) -> int:
        return (await self.socket.receive_output(timeout=PATIENCE_S))["code"]

    async def ends(self) -> None:
        """What it ends with is raised as it is left."""
        await asyncio.wait([self.socket.future], timeout=PATIENCE_S)

    async def hears_nothing(self) -> bool:
        return await self.socket.receive_nothing(timeout=0.4)


def a_cluster_at(batch: int, name: str = ""):
    cluster = make.a_cluster(name)
    Observer.objects.create(cluster=cluster, batch=batch, lease_until=timezone.now())
    return cluster


async def notify(cluster, seq: int, *nodes, prev: int | None = None) -> None:
    numbers = {"seq": seq, "prev": seq - 1 if prev is None else prev}
    message = {"type": "cluster.changed", "cluster": cluster.pk, "nodes": list(nodes), "kinds": ["nodes"], **numbers}
    for group in ("fleet", f"cluster-{cluster.pk}"):
        await get_channel_layer().group_send(group, message)


async def test_says_first_where_the_numbers_stand():
    cluster = await make_row(a_cluster_at)(41)
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, "fleet") as browser:
        hello = await browser.hears()

    assert hello["type"] == "hello"
    assert hello["seq"] == {f"cluster-{cluster.pk}": 41}
    assert f"cluster-{cluster.pk}" in hello["last_seen"]
    assert hello["server_time"]


@pytest.mark.parametrize("prev", [41, 42, 38])
async def test_relays_a_change_with_its_number_and_the_one_before(prev):
    """That which was told with it: a flush may have several numbers, and what is of no flush has the newest one's."""
    cluster = await make_row(a_cluster_at)(41)
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, f"cluster-{cluster.pk}") as browser:
        await browser.hears()
        await notify(cluster, 42, [7, 2], prev=prev)
        told = await browser.hears()

    assert (told["topic"], told["seq"], told["prev"]) == (f"cluster-{cluster.pk}", 42, prev)
    assert told["nodes"] == [[7, 2]]


async def test_relays_what_another_app_tells_of_its_topics_to_who_opened_them():
    one, other = await make_row(make.a_plan)(), await make_row(make.a_plan)()
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, f"plan-{one.pk}") as browser:
        await browser.hears()
        for plan in (other, one):
            message = {"type": "topic.changed", "topic": f"plan-{plan.pk}", "keys": [f"plan-{plan.pk}"], "seq": 7}
            await get_channel_layer().group_send(f"plan-{one.pk}", message)
        told = await browser.hears()

    assert (told["topic"], told["seq"]) == (f"plan-{one.pk}", 7)


async def test_a_slow_browser_gets_the_newest_state_and_not_the_backlog():
    cluster = await make_row(a_cluster_at)(0)
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, "fleet") as browser:
        await browser.hears()
        for seq in range(1, 31):
            await notify(cluster, seq, [7, seq % 3])
        last_seen = [await browser.hears()]
        while last_seen[-1]["seq"] < 30:
            last_seen.append(await browser.hears())

    assert len(last_seen) <= 3
    assert last_seen[-1]["nodes"] == [[7, 0]]


async def test_nobody_is_turned_away():
    async with Browser(AnonymousUser(), "fleet") as browser:
        assert await browser.closed_with() == consumer.SIGNED_OUT


async def test_a_stranger_may_not_listen_to_a_cluster():
    cluster = await make_row(a_cluster_at)(1)
    eve = await make_row(make.a_user)()

    async with Browser(eve, f"cluster-{cluster.pk}") as browser:
        assert await browser.closed_with() == consumer.NOT_YOURS


@pytest.mark.parametrize(
    "topics", ["", "rubbish", "cluster-x", "fleet,cluster-999999", "cluster--1", ",".join(["fleet"] * 30)]
)
async def test_what_is_no_topic_is_refused(topics):
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, topics) as browser:
        assert await browser.closed_with() == consumer.NOT_YOURS


async def test_the_fleet_of_one_cluster_does_not_tell_of_another():
    mine, theirs = await make_row(a_cluster_at)(1), await make_row(a_cluster_at)(1)
    viewer = await make_row(make.a_user)(role="viewer", on=mine)

    async with Browser(viewer, "fleet") as browser:
        hello = await browser.hears()
        await notify(theirs, 2, [7, 2])
        silent = await browser.hears_nothing()

    assert list(hello["seq"]) == [f"cluster-{mine.pk}"]
    assert silent


@pytest.mark.parametrize("topics", ["fleet", "fleet,plans", "cluster-{},plans"])
async def test_who_sees_one_pool_is_told_that_something_changed_and_not_which_nodes(topics):
    cluster = await make_row(a_cluster_at)(1)
    pool = await make_row(make.a_pool)(cluster)
    viewer = await make_row(make.a_user)(role="viewer", on=pool)

    async with Browser(viewer, topics.format(cluster.pk)) as browser:
        await browser.hears()
        await notify(cluster, 2, [7, 2])
        told = await browser.hears()

    assert told["nodes"] == []
    assert told["all"] is True


async def test_who_sees_the_fleet_is_told_which_nodes_whatever_else_is_opened():
    cluster = await make_row(a_cluster_at)(1)
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, "plans,fleet") as browser:
        await browser.hears()
        await notify(cluster, 2, [7, 2])
        told = await browser.hears()

    assert told["nodes"] == [[7, 2]]


async def test_the_heartbeat_carries_the_newest_numbers(monkeypatch):
    """A page whose last message was lost finds out, though nothing more happens."""
    monkeypatch.setattr(heart, "EVERY_S", 0.1)
    cluster = await make_row(a_cluster_at)(1)
    viewer = await make_row(make.a_user)(role="viewer")

    async with Browser(viewer, "fleet") as browser:
        await browser.hears()
        await make_row(Observer.objects.update)(batch=9)
        beats = [await browser.hears() for _ in range(3)]

    assert {beat["type"] for beat in beats} == {"heartbeat"}
    assert beats[-1]["seq"] == {f"cluster-{cluster.pk}": 9}


async def test_closes_when_no_heartbeat_comes_through_the_layer(monkeypatch):
    monkeypatch.setattr(heart, "EVERY_S", 0.05)
    viewer = await make_row(make.a_user)(role="viewer")
    await make_row(a_cluster_at)(1)

    async with Browser(viewer, "fleet") as browser:
        await browser.hears()
        monkeypatch.setattr(heart.Heart, "_beat_once", lambda *_: asyncio.sleep(0))
        while (said := await browser.socket.receive_output(timeout=PATIENCE_S))["type"] == "websocket.send":
            pass

    assert said["code"] == consumer.TRY_AGAIN


async def test_a_socket_that_fails_half_way_leaves_what_it_joined(monkeypatch):
    viewer = await make_row(make.a_user)(role="viewer")
    await make_row(a_cluster_at)(1)

    def away(*_):
        raise ConnectionError("no database")

    monkeypatch.setattr(consumer, "pulse_of", away)

    with pytest.raises(ConnectionError):
        async with Browser(viewer, "fleet") as browser:
            await browser.ends()

    assert not any(get_channel_layer().groups.values())
    assert heart.heart()._listeners == 0


async def test_a_layer_that_hangs_lets_nobody_believe_that_the_link_is_live(monkeypatch):
    """It takes who joins: the page said *live* for a quarter of a minute, and again after each new try."""
    viewer = await make_row(make.a_user)(role="viewer")
    await make_row(a_cluster_at)(1)
    monkeypatch.setattr(heart, "SEND_S", 0.05)
    monkeypatch.setattr(get_channel_layer(), "send", lambda *_: asyncio.Event().wait())

    async with Browser(viewer, "fleet") as browser:
        assert await browser.closed_with() == consumer.TRY_AGAIN


async def test_a_layer_that_is_away_turns_browsers_away_to_try_again(monkeypatch):
    viewer = await make_row(make.a_user)(role="viewer")
    await make_row(a_cluster_at)(1)

    async def refuse(*_):
        raise ConnectionRefusedError("no Redis")

    monkeypatch.setattr(get_channel_layer(), "group_add", refuse)

    async with Browser(viewer, "fleet") as browser:
        assert await browser.closed_with() == consumer.TRY_AGAIN
