"""A nudge is sent, or it is lost; it never costs anybody anything."""

import socket
import time
from threading import Thread, current_thread

import pytest
import time_machine
from celery import current_app
from django.db import connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from edges.background import Background
from fleet.messages import wake
from tests.make import NOON
from tests.patience import PATIENCE_S, get_through

pytestmark = pytest.mark.sqlite


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch):
    """Point Celery at an address."""

    def at(port: int) -> None:
        monkeypatch.setattr(wake, "_nudges", Background("nudges", most_waiting=9))
        monkeypatch.setattr(current_app.conf, "broker_url", f"redis://127.0.0.1:{port}/0")
        monkeypatch.setattr(current_app.conf, "broker_write_url", f"redis://127.0.0.1:{port}/0")

    return at


@pytest.fixture
def senders(monkeypatch: pytest.MonkeyPatch) -> list[Thread]:
    """Who has waited for the broker."""
    threads: list[Thread] = []
    send = current_app.send_task

    def note_and_send(*given, **named):
        threads.append(current_thread())
        return send(*given, **named)

    monkeypatch.setattr(current_app, "send_task", note_and_send)
    return threads


def wait_for(is_so) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.django_db(transaction=True)
def test_a_nudge_waits_for_the_commit(sent):
    with transaction.atomic():
        wake.wake_observer(3, 7)
        waiting, before = len(connection.run_on_commit), list(sent)

    wait_for(lambda: sent)
    name, given = sent[0]
    assert (waiting, before) == (1, [])
    assert (name, given["kwargs"], given["queue"]) == ("fleet.tasks.observe", {"cluster_id": 3, "epoch": 7}, "observe")
    assert (given["retry"], given["ignore_result"]) == (False, True)
    assert 0 < given["expires"] <= 30


@pytest.mark.django_db(transaction=True)
def test_what_was_not_committed_wakes_nobody(sent):
    with transaction.atomic():
        wake.wake_observer(3, 7)
        transaction.set_rollback(True)
    wake.wake_observer(4, 1)

    wait_for(lambda: sent)
    assert [given["kwargs"]["cluster_id"] for _, given in sent] == [4]


@pytest.mark.django_db(transaction=True)
def test_a_refusing_broker_fails_and_delays_nobody(broker, senders):
    broker(1)

    with transaction.atomic():
        wake.queue("any.task", queue="default", kwargs={}, expires=PATIENCE_S)

    wait_for(lambda: senders)
    assert current_thread() not in senders


@pytest.mark.django_db(transaction=True)
def test_a_nudge_that_is_refused_holds_up_none_behind_it(broker, senders, monkeypatch: pytest.MonkeyPatch):
    """Between two tries kombu sleeps, and it tries until a clock that a test may have stopped has gone on."""
    broker(1)
    slept: list[float] = []
    monkeypatch.setattr("kombu.utils.functional.sleep", slept.append)

    with time_machine.travel(NOON, tick=False):
        for _ in range(5):
            wake.queue("any.task", queue="default", kwargs={}, expires=PATIENCE_S)
        get_through(wake._nudges)

    assert (len(senders), slept) == (5, [])


@pytest.mark.django_db(transaction=True)
def test_a_frozen_broker_fails_and_delays_nobody(broker, senders):
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        broker(frozen.getsockname()[1])

        for _ in range(20):
            with transaction.atomic():
                wake.queue("any.task", queue="default", kwargs={}, expires=PATIENCE_S)

        wait_for(lambda: senders)
        assert current_thread() not in senders
    get_through(wake._nudges)  # else the next test counts them


@pytest.mark.django_db(transaction=True)
def test_a_burst_wakes_once_and_its_end_once_more(sent):
    nudge = wake.Coalesced("any.task", "default", at_most_every_s=0.5)
    for _ in range(10):
        nudge.ask(3)
    wait_for(lambda: len(sent) == 2)

    nudge.ask(4)
    wait_for(lambda: len(sent) == 3)
    assert [name for name, _ in sent] == ["any.task"] * 3
    assert [given["kwargs"]["cluster_id"] for _, given in sent] == [3, 3, 4]


@pytest.mark.django_db(transaction=True)
def test_a_burst_takes_no_connection_that_nobody_gives_back(sent, monkeypatch: pytest.MonkeyPatch):
    """PostgreSQL's pool has twelve of them for a whole worker."""
    nudge = wake.Coalesced("any.task", "default", at_most_every_s=0.5)
    nudge.ask(3)
    taken_by: list[str] = []
    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", lambda _: taken_by.append(current_thread().name))

    nudge.ask(3)
    wait_for(lambda: len(sent) == 2)

    assert taken_by == []


@pytest.mark.django_db(transaction=True)
def test_a_nudge_that_is_too_old_is_not_sent(sent):
    wake.queue("any.task", queue="default", kwargs={}, expires=0.0)
    wake.queue("next.task", queue="default", kwargs={}, expires=PATIENCE_S)

    wait_for(lambda: sent)
    assert [name for name, _ in sent] == ["next.task"]
