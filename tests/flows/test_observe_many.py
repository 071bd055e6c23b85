"""Twenty clusters of which five accept connections and never answer: the others do not notice."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from fleet.messages import announce, listeners, wake
from fleet.models import Bookmark, Node, Observer
from fleet.observer.lease import list_watch, watch_lease
from fleet.observer.watches import watch_cursor
from tests.fleet.light_server import NODES, LightServer, light_servers
from tests.flows.light import Watched, eventually, watched
from tests.flows.test_observe_faults import a_node

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
CLUSTERS, HUNG = 20, 5


@pytest.fixture
def many(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Watched]]:
    """Their clocks run faster than in life: what is noted every ten seconds is noted every two."""
    monkeypatch.setattr(watch_cursor, "WRITE_LAST_SEEN_EVERY", timedelta(seconds=2))
    monkeypatch.setattr(list_watch, "TICK_S", 2.0)
    monkeypatch.setattr(watch_lease, "ASK_AGAIN_S", 0.5)
    for module, name in ((wake, "wake_observer"), (wake, "wake_observer_after"), (listeners, "notify")):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)
    servers = [
        LightServer(uid=f"uid-{n}", objects={NODES: [a_node(f"gpu-{n}")]}, bookmark_every_s=1.0, hangs=n < HUNG)
        for n in range(CLUSTERS)
    ]
    with light_servers(*servers):
        yield [watched(tmp_path, server, f"cluster-{n}") for n, server in enumerate(servers)]


def test_five_that_hang_leave_fifteen_live_say_why_and_hold_nobody_up(many):
    hung, well, stop = many[:HUNG], many[HUNG:], threading.Event()

    with ExitStack() as leases:
        for one in many:
            leases.enter_context(one.lease(stop=stop))
        eventually(lambda: all(one.is_listed("pods") for one in well))
        eventually(lambda: all(is_failing(one) for one in hung))
        now = timezone.now()
        eventually(lambda: all(one.bookmark("nodes").last_seen_at > now for one in well))
        leases = set(Observer.objects.filter(lease_until__gt=now).values_list("cluster", flat=True))
        backing_off = set(Observer.objects.filter(next_look_at__isnull=False).values_list("cluster", flat=True))
        stop.set()

    assert leases == {one.cluster.pk for one in well}
    assert backing_off == {one.cluster.pk for one in hung}
    assert {one.bookmark("nodes").state for one in well} == {"watching"}
    assert {one.bookmark("nodes").message for one in hung} == {"The API server did not answer in time."}
    assert Node.objects.count() == CLUSTERS - HUNG


def is_failing(one: Watched) -> bool:
    return Bookmark.objects.filter(cluster=one.cluster, kind="nodes", state="failing").exists()
