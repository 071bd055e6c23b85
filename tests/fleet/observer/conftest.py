"""A cluster's mirror without a cluster: what its reflectors would say is fed by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from fleet.messages import announce, listeners
from fleet.models import Bookmark, Cluster, Observer
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.memory import Memory
from fleet.observer.mirror.watch_scope import WatchScope
from fleet.observer.persistence.flusher import Flusher
from fleet.observer.watches.delta_queue import DeltaQueue
from fleet.observer.watches.deltas import Changed, Delta, ListBegun, ListPage, Opened
from fleet.observer.watches.watch_cursor import WatchCursor
from kube.structs import Seen
from tests.make import NOON, a_cluster


class Mirror:
    """One lease's deltas and flusher, with a clock that is moved by hand."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.now = NOON
        self.version = 100
        Observer.objects.create(cluster=cluster, epoch=1, lease_until=NOON)
        Bookmark.objects.bulk_create(Bookmark(cluster=cluster, kind=kind, state_since=NOON) for kind in KINDS)
        self.begin()

    def begin(self, *, epoch: int = 1) -> None:
        """What a worker that starts does: from the rows alone."""
        cursors = {mark.kind: WatchCursor.of(mark) for mark in Bookmark.objects.filter(cluster=self.cluster)}
        self.deltas = DeltaQueue({kind: cursors[kind] for kind in KINDS}, WatchScope(), Memory(epoch))
        self.flusher = Flusher(self.cluster.pk, epoch=epoch, batch=0, clock=lambda: self.now)

    def record_update(self, *deltas: Delta) -> None:
        for delta in deltas:
            self.deltas.absorb(delta, now=self.now)

    def list(self, kind: str, *pages: list[Seen]) -> None:
        self.version += 1
        self.record_update(ListBegun(kind))
        for number, page in enumerate(pages, start=1):
            self.record_update(ListPage(kind, tuple(page), str(self.version), is_last=number == len(pages)))
        self.flush()
        self.record_update(Opened(kind))

    def see(self, kind: str, seen: Seen, *, is_gone: bool = False) -> None:
        self.version += 1
        self.record_update(Changed(kind, seen, is_gone, str(self.version)))

    def flush(self, *, is_last: bool = False) -> None:
        self.flusher.flush(self.deltas, is_last=is_last)

    def later(self, **by: float) -> None:
        self.now += timedelta(**by)

    @property
    def to_list_again(self) -> set[str]:
        """Under the next lease: what is kept of them is decided differently now."""
        return {name for name, cursor in self.deltas.cursors.items() if cursor.is_outgrown}

    def bookmark(self, kind: str) -> Bookmark:
        return Bookmark.objects.get(cluster=self.cluster, kind=kind)


@contextmanager
def walked() -> Iterator[Mirror]:
    """A mirror for one of the many walks of a property test: nothing of it is left for the next one."""
    with pytest.MonkeyPatch.context() as patched, transaction.atomic():
        patched.setattr(announce, "send", lambda *_: None)
        patched.setattr(listeners, "STATE_CHANGED", [])
        patched.setattr(listeners, "CHANGED", [])
        yield Mirror(a_cluster("walks", seen_at=None))
        transaction.set_rollback(True)


@pytest.fixture
def mirror(db: None, told: list[dict[str, Any]]) -> Mirror:
    return Mirror(a_cluster("north", seen_at=None))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """Every announcement, instead of a channel layer."""
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(announce, "send", lambda _, message: messages.append(message))
    monkeypatch.setattr(listeners, "STATE_CHANGED", [])
    monkeypatch.setattr(listeners, "CHANGED", [])
    return messages
