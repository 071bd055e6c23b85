"""A worker's lease of a cluster: take it, verify the cluster's identity, list and watch, then offer the next lease."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Event

import structlog
from django.db import transaction
from django.utils import timezone

from fleet.allocation.counters import recount
from fleet.freshness.kinds import NODES
from fleet.messages import announce, wake
from fleet.models import Bookmark, BookmarkState, Cluster, LostLease, Observer, Pool
from fleet.observer.lease import shutdown
from fleet.observer.lease.connections import give_back
from fleet.observer.lease.list_watch import ListWatch
from fleet.observer.lease.timeouts import patiently
from fleet.observer.lease.worker_reports import own_name
from fleet.observer.mirror import known_rows, memory
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.persistence import overdue_mig_changes, placements
from fleet.observer.persistence.cluster_removal import forget
from fleet.observer.persistence.dependent_rows import count_all
from fleet.observer.persistence.flusher import Flusher
from fleet.observer.watches.delta_queue import DeltaQueue
from fleet.observer.watches.deltas import ForeignCluster, make_sure
from fleet.observer.watches.watch_cursor import WatchCursor
from fleet.pools.membership_writes import sort_cluster
from kube import client

HELD_S = 60.0  # then any free worker takes the next; `lease_until` moves with each flush
ASK_AGAIN_S = 5.0
TIMEOUT_S = 15.0  # for a cluster with a recent answer: an API server restarts in less
CLOCK_STEP_S = 0.5  # smaller changes of the clock skew are not written

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class WatchLease:
    cluster: Cluster
    epoch: int
    until: float  # monotonic
    stop: Event
    clock: Callable[[], datetime] = timezone.now

    @property
    def is_over(self) -> bool:
        return self.stop.is_set() or time.monotonic() >= self.until


def take_lease(cluster_id: int, epoch: int, *, seconds: float = HELD_S, stop: Event = shutdown.asked) -> None:
    """Watches a cluster for one lease, if the lease is free and due; then offers the next.

    A cluster without an answer releases its thread at once, with growing waits.
    """
    if Observer.yields_thread(cluster_id, now=timezone.now()):
        log.debug("others may answer and have no thread", cluster=cluster_id, epoch=epoch)
        return
    won = Observer.take(cluster_id, epoch=epoch, owner=own_name(), now=timezone.now())
    if won is None:
        log.debug("the lease is taken, or the message is an old one", cluster=cluster_id, epoch=epoch)
        return
    until = time.monotonic() + seconds * random.uniform(0.9, 1.1)
    lease = WatchLease(Cluster.objects.get(pk=cluster_id), won, until, stop)
    try:
        if _watch(lease):
            _hand_on(lease)
        else:
            wait = Observer.back_off(cluster_id, epoch=won, share=random.random(), now=timezone.now())
            wake.wake_observer_after(wait, cluster_id, won)
    except LostLease as lost:
        log.warning("the lease went to somebody else", cluster=lease.cluster.name, reason=str(lost))


def _hand_on(lease: WatchLease) -> None:
    Observer.give_up(lease.cluster.pk, epoch=lease.epoch, now=timezone.now())
    wake.wake_observer(lease.cluster.pk, lease.epoch)


def _watch(lease: WatchLease) -> bool:
    """Lists and watches the cluster. False: it does not answer, or another one does."""
    if not Bookmark.objects.filter(cluster=lease.cluster).exists() and not forget(
        lease.cluster.pk, epoch=lease.epoch, stop=lease.stop, clock=lease.clock
    ):
        return True
    _make_bookmarks(lease)
    try:
        connection = _connect_to_cluster(lease)
    except client.ClusterError as error:
        _note_failure(lease, error)
        return False
    if connection is None:
        return True
    try:
        is_live = _list_and_watch(lease, connection)
    except ForeignCluster as error:
        _note_failure(lease, error)
        return False
    finally:
        connection.close()
    if is_live:
        Observer.note_answer(lease.cluster.pk, epoch=lease.epoch)
    return is_live


def _list_and_watch(lease: WatchLease, connection: client.Connection) -> bool:
    """Lists and watches. Returns whether the cluster still answered at the end."""
    cluster_id = lease.cluster.pk
    remembered = memory.recall(cluster_id, epoch=lease.epoch)
    is_forgotten = not remembered.fingerprints
    if is_forgotten:
        # The writer of a whole list may have crashed before counting its rows.
        count_all(cluster_id)
        recount(cluster_id)
        placements.reconcile(cluster_id, epoch=lease.epoch, clock=lease.clock)
    known_rows.learn(cluster_id, remembered)
    if is_forgotten or Pool.objects.filter(cluster=cluster_id, is_sorted=False).exists():
        sort_cluster(cluster_id)
    overdue_mig_changes.note_overdue(cluster_id, epoch=lease.epoch, now=lease.clock())
    deltas = DeltaQueue(_cursors(cluster_id), known_rows.watch_scope_of(cluster_id), remembered)
    observer = Observer.objects.get(cluster_id=cluster_id)
    flusher = Flusher(
        cluster_id,
        epoch=lease.epoch,
        batch=observer.batch,
        clock=lease.clock,
        behind_since=observer.behind_since,
    )
    _note_clock(observer, connection, lease)
    _note_credentials(observer, connection, lease)
    ListWatch(
        connection,
        deltas,
        flusher,
        make_sure=lambda: make_sure(connection, name=lease.cluster.name, uid=lease.cluster.uid),
        clock=lease.clock,
        stop=lease.stop,
        until=lease.until,
    ).hold()
    _note_clock(observer, connection, lease)
    memory.keep_memory(cluster_id, remembered)
    return lease.stop.is_set() or not deltas.is_deaf


def _connect_to_cluster(lease: WatchLease) -> client.Connection | None:
    """Connects to this exact cluster. None: stopped before.

    :raises ClusterError: when it does not answer; after a recent answer, it is retried for some seconds
    """
    until = time.monotonic() + (TIMEOUT_S if _was_live_lately(lease) else 0.0)
    while not lease.stop.is_set():
        give_back()
        try:
            connection = patiently(lambda: _connect(lease.cluster), lease.stop)
        except client.ClusterError as error:
            if lease.is_over or time.monotonic() >= until or isinstance(error, ForeignCluster):
                raise
            _note_failure(lease, error)
        else:
            if connection is not None:
                _note_own_cluster(lease)
            return connection
        give_back()
        lease.stop.wait(ASK_AGAIN_S * random.uniform(0.7, 1.0))
    return None


def _was_live_lately(lease: WatchLease) -> bool:
    nodes = Bookmark.objects.filter(cluster=lease.cluster, kind=NODES).first()
    return nodes is not None and nodes.is_fresh(now=lease.clock())


def _connect(cluster: Cluster) -> client.Connection:
    connection = client.connect(cluster.kubeconfig, cluster.context)
    try:
        make_sure(connection, name=cluster.name, uid=cluster.uid)
    except client.ClusterError:
        connection.close()
        raise
    return connection


def _note_failure(lease: WatchLease, error: client.ClusterError) -> None:
    now, message = lease.clock(), str(error)[:1000]
    with transaction.atomic():
        stale = Bookmark.objects.filter(cluster=lease.cluster).exclude(state=BookmarkState.FAILING, message=message)
        is_new = stale.exists()
        if isinstance(error, ForeignCluster):
            Cluster.objects.filter(pk=lease.cluster.pk).update(foreign_uid=error.foreign_uid)
        Observer.keep(lease.cluster.pk, epoch=lease.epoch, now=now, flushed=is_new)
        stale.update(state=BookmarkState.FAILING, message=message, state_since=now)
        seq = Observer.batch_of(lease.cluster.pk)
    if is_new:
        log.warning("a cluster cannot be watched", cluster=lease.cluster.name, reason=error.in_full)
        announce.cluster_changed(lease.cluster.pk, seq=seq, prev=seq - 1, nodes=(), kinds=("bookmarks",), at=now)


def _note_own_cluster(lease: WatchLease) -> None:
    """Clears the foreign UID: the known cluster answers again, so no decision is needed."""
    if Cluster.objects.filter(pk=lease.cluster.pk).exclude(foreign_uid="").update(foreign_uid=""):
        log.warning("the cluster that is known answers again", cluster=lease.cluster.name)


def _note_clock(observer: Observer, connection: client.Connection, lease: WatchLease) -> None:
    skew_s, was = connection.clock.skew_s, observer.clock_skew_s
    if skew_s is not None and (was is None or abs(skew_s - was) >= CLOCK_STEP_S):
        observer.clock_skew_s = skew_s
        Observer.objects.filter(pk=observer.pk, epoch=lease.epoch).update(clock_skew_s=skew_s)


def _note_credentials(observer: Observer, connection: client.Connection, lease: WatchLease) -> None:
    """Records when the certificates and tokens end. A lease that is over records nothing."""
    credentials = [life.written() for life in connection.credential_lives()]
    if credentials != observer.credentials:
        Observer.objects.filter(pk=observer.pk, epoch=lease.epoch).update(credentials=credentials)


def _make_bookmarks(lease: WatchLease) -> None:
    Bookmark.objects.bulk_create(
        (Bookmark(cluster=lease.cluster, kind=kind, state_since=lease.clock()) for kind in KINDS),
        ignore_conflicts=True,
    )


def _cursors(cluster_id: int) -> dict[str, WatchCursor]:
    bookmarks = Bookmark.objects.filter(cluster_id=cluster_id, kind__in=KINDS)
    found = {bookmark.kind: WatchCursor.of(bookmark) for bookmark in bookmarks}
    return {name: found[name] for name in KINDS}
