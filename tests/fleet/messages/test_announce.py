import asyncio
import threading
import time

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fleet.messages import announce
from tests.make import NOON
from tests.patience import PATIENCE_S, get_through


class Layer:
    """A channel layer that fails as often as it is told to."""

    def __init__(self, *failures: Exception, takes_s: float = 0) -> None:
        self.failures = list(failures)
        self.takes_s = takes_s
        self.sent: list[tuple[str, dict]] = []
        self.threads: set[str] = set()

    async def group_send(self, group: str, message: dict) -> None:
        self.threads.add(threading.current_thread().name)
        await asyncio.sleep(self.takes_s)
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((group, message))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    """What is told from now on goes there."""
    get_through(announce._announcements)

    def put(layer: Layer) -> Layer:
        monkeypatch.setattr(announce, "get_channel_layer", lambda: layer)
        return layer

    return put


def wait_for(is_so) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_flush_is_told_to_the_cluster_and_to_the_fleet(use):
    layer = use(Layer())

    announce.cluster_changed(7, seq=3, prev=1, nodes=[(1, 0), (2, 6)], kinds={"pods", "nodes"}, at=NOON)

    wait_for(lambda: len(layer.sent) == 2)
    assert [group for group, _ in layer.sent] == ["cluster-7", "fleet"]
    assert layer.sent[0][1] == {
        "type": "cluster.changed",
        "cluster": 7,
        "seq": 3,
        "prev": 1,
        "nodes": [[1, 0], [2, 6]],
        "kinds": ["nodes", "pods"],
        "at": "2026-11-21T12:00:00+00:00",
    }


def test_what_is_of_no_flush_is_a_gap_to_who_has_not_heard_of_the_newest(use):
    layer = use(Layer())

    announce.cluster_changed(7, seq=3, nodes=(), kinds=["findings"], at=NOON)

    wait_for(lambda: layer.sent)
    assert (layer.sent[0][1]["prev"], layer.sent[0][1]["seq"]) == (3, 3)


def test_too_many_nodes_are_told_as_all(use):
    layer = use(Layer())

    announce.cluster_changed(7, seq=3, nodes=[(key, 0) for key in range(2001)], kinds=["nodes"], at=NOON)

    wait_for(lambda: layer.sent)
    assert (layer.sent[0][1]["all"], layer.sent[0][1]["nodes"]) == (True, [])


@pytest.mark.parametrize("error", [RedisConnectionError("gone"), ConnectionResetError()])
def test_the_first_send_after_a_restart_is_repeated(use, error):
    layer = use(Layer(error))

    announce.send(["fleet"], {"type": "x"})

    wait_for(lambda: layer.sent)


def test_a_dead_layer_fails_nobody_and_the_next_message_gets_through(use):
    layer = use(Layer(RedisConnectionError("gone"), RedisConnectionError("still gone"), ZeroDivisionError()))

    for _ in range(3):
        announce.send(["fleet"], {"type": "x"})

    wait_for(lambda: layer.sent)


def test_a_frozen_layer_delays_nobody(use, monkeypatch):
    layer = use(Layer(takes_s=60))
    monkeypatch.setattr(announce, "SEND_S", 0.05)

    for _ in range(50):
        announce.send(["fleet"], {"type": "x"})
    wait_for(lambda: layer.threads)

    assert threading.current_thread().name not in layer.threads
    layer.takes_s = 0
    announce.send(["fleet"], {"type": "last"})
    wait_for(lambda: ("fleet", {"type": "last"}) in layer.sent)


def test_what_is_old_is_not_sent_any_more(use, monkeypatch):
    layer = use(Layer(takes_s=60))
    monkeypatch.setattr(announce, "SEND_S", 0.2)
    monkeypatch.setattr(announce, "OLD_S", 0.1)

    announce.send(["fleet"], {"type": "slow"})
    announce.send(["fleet"], {"type": "old by then"})
    wait_for(lambda: layer.threads and announce._announcements._waiting.empty())
    layer.takes_s = 0
    wait_for(lambda: said_after(layer, "new"))

    assert {message["type"] for _, message in layer.sent} == {"new"}


def said_after(layer: Layer, what: str) -> bool:
    announce.send(["fleet"], {"type": what})
    time.sleep(0.005)
    return bool(layer.sent)


def test_everything_is_sent_by_one_thread(use):
    layer = use(Layer())
    callers = [threading.Thread(target=announce.send, args=(["fleet"], {"type": "x"})) for _ in range(8)]

    for caller in callers:
        caller.start()
    wait_for(lambda: len(layer.sent) == 8)

    assert layer.threads == {"announcements"}


def test_groups_are_named_once():
    assert (announce.fleet_group(), announce.cluster_group(3)) == ("fleet", "cluster-3")
