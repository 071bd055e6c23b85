"""What a worker that watches the simulated cluster would have written: the product's own queue and writer."""

from benchmarks.finding.day.stage import VirtualClock
from fleet.models import Bookmark, BookmarkState, Cluster, Observer
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.memory import Memory
from fleet.observer.mirror.watch_scope import WatchScope
from fleet.observer.persistence.flusher import Flusher
from fleet.observer.watches.delta_queue import DeltaQueue
from fleet.observer.watches.deltas import Changed, Failed, ListBegun, ListPage, Opened
from fleet.observer.watches.watch_cursor import WatchCursor
from kube.client.decoder import decode
from simulator.cursor import Cursor
from simulator.events import EventType
from simulator.store import Store

NAMED = ":"  # in the name of a kind of which one object is read: here nobody configures MIG or sharing


class Observing:
    """Between the API server and the rows no socket; else as `fleet.observer.lease` does it."""

    def __init__(self, store: Store, cluster: Cluster, clock: VirtualClock) -> None:
        self._store, self._cluster_id, self._clock = store, cluster.pk, clock
        now = clock.now()
        Observer.objects.create(cluster=cluster, epoch=1, lease_until=now)
        Bookmark.objects.bulk_create(Bookmark(cluster=cluster, kind=kind, state_since=now) for kind in KINDS)
        found = {mark.kind: WatchCursor.of(mark) for mark in Bookmark.objects.filter(cluster=cluster)}
        self._deltas = DeltaQueue({kind: found[kind] for kind in KINDS}, WatchScope(), Memory(1))
        self._flusher = Flusher(cluster.pk, epoch=1, batch=0, clock=clock)
        self._cursors: dict[str, Cursor] = {}
        for name in sorted(KINDS, key=lambda name: len(KINDS[name].after)):
            self._list(name)

    def _list(self, name: str) -> None:
        kind, now = KINDS[name], self._clock.now()
        resource = kind.resource
        served = None if NAMED in name else self._store.kinds.get((resource.group, resource.version, resource.plural))
        if served is None:
            self._deltas.absorb(Failed(name, BookmarkState.ABSENT, ""), now=now)
            return
        records = self._store.shelf(served).records.values()
        items = tuple(decode(record.json, resource.struct) for record in records)
        self._cursors[name] = self._store.cursor(served, since=str(self._store.version))
        self._deltas.absorb(ListBegun(name), now=now)
        self._deltas.absorb(ListPage(name, items, str(self._store.version), is_last=True), now=now)
        self._flusher.flush(self._deltas)

    def look(self) -> None:
        """All that happened since the last look becomes rows."""
        now = self._clock.now()
        for name, cursor in self._cursors.items():
            struct = KINDS[name].resource.struct
            for change in cursor.read():
                seen, is_gone = decode(change.record.json, struct), change.type is EventType.DELETED
                self._deltas.absorb(Changed(name, seen, is_gone, str(change.version)), now=now)
            self._deltas.absorb(Opened(name), now=now)
        self._flusher.flush(self._deltas, is_last=True)
        Observer.note_answer(self._cluster_id, epoch=1)

    def miss(self) -> None:
        """Nobody answers: the lease was taken, and is given back until it is tried again."""
        Observer.back_off(self._cluster_id, epoch=1, share=0.5, now=self._clock.now())
