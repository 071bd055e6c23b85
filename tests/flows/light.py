"""Watch leases held against an API server that misbehaves."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.db import connection
from django.utils import timezone

from fleet.models import Bookmark, Cluster, Observer
from fleet.observer.lease.watch_lease import take_lease
from tests.fleet.light_server import LightServer, a_kubeconfig
from tests.patience import PATIENCE_S


@dataclass
class Watched:
    """A cluster, its API server, and a worker's lease of it."""

    cluster: Cluster
    server: LightServer

    @contextmanager
    def lease(self, *, seconds: float = 60.0, stop: threading.Event | None = None) -> Iterator[threading.Thread]:
        """A lease held in a thread of its own, due or not; at the end it is told to stop, as when its worker is."""
        stop, epoch = stop or threading.Event(), Observer.try_now(self.cluster.pk)
        assert epoch is not None

        def hold() -> None:
            take_lease(self.cluster.pk, epoch, seconds=seconds, stop=stop)
            connection.close()

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            stop.set()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def bookmark(self, kind: str) -> Bookmark:
        return Bookmark.objects.get(cluster=self.cluster, kind=kind)

    def is_listed(self, kind: str = "nodes") -> bool:
        return Bookmark.objects.filter(cluster=self.cluster, kind=kind, listed_at__isnull=False).exists()


def watched(folder: Path, server: LightServer, name: str = "north") -> Watched:
    row = Cluster.objects.create(
        name=name,
        uid=server.uid,
        kubeconfig=a_kubeconfig(folder, server, name),
        context="light",
        added_at=timezone.now(),
    )
    Observer.objects.create(cluster=row, lease_until=timezone.now() - timedelta(seconds=1))
    return Watched(row, server)


def eventually(claim: Callable[[], object], *, within_s: float = PATIENCE_S) -> None:
    until = time.monotonic() + within_s
    while not claim():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.05)
