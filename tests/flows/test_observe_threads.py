"""More clusters than threads to watch them from, and most of them dead: the one that lives does not notice."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from queue import Empty, SimpleQueue

import pytest
from django.db import connection
from django.utils import timezone

from fleet.messages import announce, listeners, wake
from fleet.models import Observer
from fleet.observer.lease import list_watch
from fleet.observer.lease.sweep import sweep
from fleet.observer.lease.watch_lease import take_lease
from fleet.observer.watches import watch_cursor
from tests.fleet.light_server import NODES, LightServer, light_servers
from tests.flows.light import Watched, watched
from tests.flows.test_observe_faults import a_node
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
THREADS, DEAD = 2, 4


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> SimpleQueue[tuple[int, int]]:
    """The leases that were offered, instead of a broker's queue."""
    leases: SimpleQueue[tuple[int, int]] = SimpleQueue()
    monkeypatch.setattr(wake, "wake_observer", lambda cluster_id, epoch: leases.put((cluster_id, epoch)))
    monkeypatch.setattr(wake, "wake_observer_after", lambda *_: None)  # beat's sweep finds what is due
    monkeypatch.setattr(listeners, "notify", lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)
    monkeypatch.setattr(watch_cursor, "WRITE_LAST_SEEN_EVERY", timedelta(seconds=1))
    monkeypatch.setattr(list_watch, "TICK_S", 1.0)
    return leases


@pytest.fixture
def clusters(db: None, tmp_path: Path) -> Iterator[list[Watched]]:
    """Those that hang are the worst: a refused connection costs nothing."""
    hung = [LightServer(uid=f"uid-{n}", objects={}, hangs=True) for n in range(DEAD)]
    well = LightServer(uid="uid-well", objects={NODES: [a_node("gpu-001")]}, bookmark_every_s=0.5)
    with light_servers(*hung, well):
        yield [watched(tmp_path, server, f"cluster-{n}") for n, server in enumerate((*hung, well))]


def work(leases: SimpleQueue[tuple[int, int]], stop: threading.Event) -> None:
    """One thread of a worker."""
    while not stop.is_set():
        try:
            cluster_id, epoch = leases.get(timeout=0.1)
        except Empty:
            continue
        take_lease(cluster_id, epoch, seconds=4.0, stop=stop)
    connection.close()


def test_the_one_that_lives_stays_watched(clusters, offered):
    *hung, well = clusters
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(offered, stop), daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < until and Observer.objects.filter(failures__gt=1).count() < DEAD:
            sweep(now=timezone.now())
            stop.wait(1.0)
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE_S)

    assert Observer.objects.filter(cluster__in=[one.cluster for one in hung], failures__gt=1).count() == DEAD
    assert well.is_listed()
    leases_of_dead = sum(Observer.objects.exclude(cluster=well.cluster).values_list("epoch", flat=True))
    # Each dead one may be tried before it is known to be; then at most one a thread for each lease of the living.
    assert leases_of_dead <= DEAD + THREADS * Observer.objects.get(cluster=well.cluster).epoch
