"""Clusters as folders of recordings have them, observed once for all tests of a module."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import Q
from django.utils import timezone

from fleet.messages import announce, listeners, wake
from fleet.models import Bookmark, BookmarkState, Cluster, Node, Observer
from fleet.observer.lease import list_watch
from fleet.observer.lease.watch_lease import take_lease
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.watches import reflector
from kube import client
from tests.api_server import an_api_server
from tests.fleet.replay import OF, RECORDINGS, define, replay

LONG_ENOUGH_S = 1.2  # for a lease on a machine that has nothing else to do
LEASES_AT_MOST = 20
UNLISTED = (BookmarkState.ABSENT, BookmarkState.FORBIDDEN)


@dataclass(frozen=True)
class Recorded:
    """A cluster as its folder of recordings has it."""

    name: str
    kinds: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def paths(self) -> list[Path]:
        return sorted((RECORDINGS / self.name).glob("*.yaml"))

    def observe(self, folder: Path) -> None:
        with an_api_server(folder, *self.flags) as server:
            define(server, *self.kinds)
            for path in self.paths:
                replay(server, path)
            uid = client.kube_system_uid(client.connect(server.kubeconfig, server.context))
            row = Cluster.objects.create(
                name=self.name, uid=uid, kubeconfig=server.kubeconfig, context=server.context, added_at=timezone.now()
            )
            Observer.objects.create(cluster=row, lease_until=timezone.now() - timedelta(seconds=1))
            for epoch in range(LEASES_AT_MOST):
                take_lease(row.pk, epoch, seconds=LONG_ENOUGH_S)
                if has_seen_all(row):
                    return
            raise AssertionError(f"{self.name} was not seen in {LEASES_AT_MOST} leases")


@contextmanager
def observed(clusters: tuple[Recorded, ...], blocker, folders: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch, blocker.unblock():
        patch.setattr(reflector, "LONGEST_WAIT_S", 0.2)
        patch.setattr(list_watch, "LOOK_UP_S", 0.1)
        patch.setattr(wake, "wake_observer", lambda *_: None)
        patch.setattr(listeners, "notify", lambda *_: None)
        patch.setattr(announce, "send", lambda *_: None)
        for cluster in clusters:
            cluster.observe(folders.mktemp(cluster.name))
    yield
    with blocker.unblock():
        Cluster.objects.all().delete()


def has_seen_all(cluster: Cluster) -> bool:
    """Whether every kind that is served was listed."""
    done = Bookmark.objects.filter(Q(listed_at__isnull=False) | Q(state__in=UNLISTED), cluster=cluster)
    return done.count() >= len(KINDS)


def seen(name: str) -> Node:
    return Node.objects.get(name=name)


def units(node: Node) -> tuple[int | None, int, int, int]:
    """Whole GPUs, slices, shares; and the boards that they are of."""
    return node.gpu_allocatable, node.slices_allocatable, node.shares_allocatable, node.gpus.count()


def unread(clusters: tuple[Recorded, ...]) -> set[str]:
    """Recordings of which no node was seen."""
    written = {path.stem for cluster in clusters for path in cluster.paths}
    return written - {node.labels[OF] for node in Node.objects.all()}
