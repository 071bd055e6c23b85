"""A worker's turn at watching a cluster: take it, make sure it is that cluster, list and watch it, hand it on."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Event

import structlog
from django.db import transaction
from django.utils import timezone

from fleet import announce, wake
from fleet.freshness import NODES
from fleet.models import Bookmark, BookmarkState, Cluster, LostTurn, Observer
from fleet.observe.lease import shutdown
from fleet.observe.lease.connections import give_back
from fleet.observe.lease.list_watch import ListWatch
from fleet.observe.lease.patience import patiently
from fleet.observe.lease.reporting import own_name
from fleet.observe.mirror import known, memory
from fleet.observe.mirror.kinds import KINDS
from fleet.observe.reading.delta_queue import DeltaQueue
from fleet.observe.reading.identity import ForeignCluster, make_sure
from fleet.observe.reading.watch_cursor import WatchCursor
from fleet.observe.writing import allocation, cpu_memory, overdue, pools
from fleet.observe.writing.flush import Flusher
from fleet.observe.writing.forget import forget
from kube import client

TURN_S = 60.0
ASK_AGAIN_S = 5.0
PATIENCE_S = 15.0  # with a cluster that was heard a moment ago: an API server restarts in less
CLOCK_STEP_S = 0.5  # a clock that is said to be off by so much more or less is worth a write

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Turn:
    cluster: Cluster
    number: int
    until: float  # monotonic
    stop: Event
    clock: Callable[[], datetime] = timezone.now

    @property
    def is_over(self) -> bool:
        return self.stop.is_set() or time.monotonic() >= self.until


def take_turn(cluster_id: int, number: int, *, seconds: float = TURN_S, stop: Event = shutdown.asked) -> None:
    """Watch a cluster for a while, if its turn is free and due; then offer the next turn.

    One that does not answer gives its slot back at once, and waits longer each time.
    """
    if Observer.gives_way(cluster_id, now=timezone.now()):
        log.debug("others may answer and have no slot", cluster=cluster_id, turn=number)
        return
    won = Observer.take(cluster_id, turn=number, owner=own_name(), now=timezone.now())
    if won is None:
        log.debug("the turn is taken, or the message is an old one", cluster=cluster_id, turn=number)
        return
    until = time.monotonic() + seconds * random.uniform(0.9, 1.1)
    turn = Turn(Cluster.objects.get(pk=cluster_id), won, until, stop)
    try:
        if _watch(turn):
            _hand_on(turn)
        else:
            wait = Observer.back_off(cluster_id, turn=won, share=random.random(), now=timezone.now())
            wake.wake_observer_after(wait, cluster_id, won)
    except LostTurn as lost:
        log.warning("the turn went to somebody else", cluster=turn.cluster.name, because=str(lost))


def _hand_on(turn: Turn) -> None:
    Observer.give_up(turn.cluster.pk, turn=turn.number, now=timezone.now())
    wake.wake_observer(turn.cluster.pk, turn.number)


def _watch(turn: Turn) -> bool:
    """List and watch it. False: the cluster does not answer, or another one does in its place."""
    if not Bookmark.objects.filter(cluster=turn.cluster).exists() and not forget(
        turn.cluster.pk, turn=turn.number, stop=turn.stop, clock=turn.clock
    ):
        return True
    _make_bookmarks(turn)
    try:
        connection = _reach(turn)
    except client.ClusterError as error:
        _note_failure(turn, error)
        return False
    if connection is None:
        return True
    try:
        is_heard = _list_and_watch(turn, connection)
    except ForeignCluster as error:
        _note_failure(turn, error)
        return False
    finally:
        connection.close()
    if is_heard:
        Observer.note_answer(turn.cluster.pk, turn=turn.number)
    return is_heard


def _list_and_watch(turn: Turn, connection: client.Connection) -> bool:
    """Whether the cluster still answered at its end."""
    cluster_id = turn.cluster.pk
    remembered = memory.recall(cluster_id, turn=turn.number)
    if not remembered.fingerprints:
        # Who wrote the rows of a whole list may have died before they were counted.
        allocation.count_all(cluster_id)
        cpu_memory.count_all(cluster_id)
    known.learn(cluster_id, remembered)
    if (agreed := pools.agreed(cluster_id)) != remembered.pools:
        pools.sort_cluster(cluster_id)
        remembered.pools = agreed
    overdue.note_overdue(cluster_id, turn=turn.number, now=turn.clock())
    deltas = DeltaQueue(_cursors(cluster_id), known.watch_scope_of(cluster_id), remembered)
    observer = Observer.objects.get(cluster_id=cluster_id)
    flusher = Flusher(
        cluster_id,
        turn=turn.number,
        batch=observer.batch,
        clock=turn.clock,
        behind_since=observer.behind_since,
    )
    _note_clock(observer, connection, turn)
    ListWatch(
        connection,
        deltas,
        flusher,
        make_sure=lambda: make_sure(connection, name=turn.cluster.name, uid=turn.cluster.uid),
        clock=turn.clock,
        stop=turn.stop,
        until=turn.until,
    ).hold()
    _note_clock(observer, connection, turn)
    Bookmark.objects.filter(cluster_id=cluster_id, kind__in=deltas.to_list_again).update(resource_version="")
    memory.keep(cluster_id, remembered)
    return turn.stop.is_set() or not deltas.is_deaf


def _reach(turn: Turn) -> client.Connection | None:
    """A connection to this very cluster. None: told to stop before there was one.

    :raises ClusterError: when it does not answer; one that did lately is asked for some seconds more
    """
    until = time.monotonic() + (PATIENCE_S if _was_heard_lately(turn) else 0.0)
    while not turn.stop.is_set():
        give_back()
        try:
            connection = patiently(lambda: _connect(turn.cluster), turn.stop)
        except client.ClusterError as error:
            if turn.is_over or time.monotonic() >= until or isinstance(error, ForeignCluster):
                raise
            _note_failure(turn, error)
        else:
            if connection is not None:
                _note_own_cluster(turn)
            return connection
        give_back()
        turn.stop.wait(ASK_AGAIN_S * random.uniform(0.7, 1.0))
    return None


def _was_heard_lately(turn: Turn) -> bool:
    nodes = Bookmark.objects.filter(cluster=turn.cluster, kind=NODES).first()
    return nodes is not None and nodes.is_fresh(now=turn.clock())


def _connect(cluster: Cluster) -> client.Connection:
    connection = client.connect(cluster.kubeconfig, cluster.context)
    try:
        make_sure(connection, name=cluster.name, uid=cluster.uid)
    except client.ClusterError:
        connection.close()
        raise
    return connection


def _note_failure(turn: Turn, error: client.ClusterError) -> None:
    now, message = turn.clock(), str(error)[:1000]
    with transaction.atomic():
        stale = Bookmark.objects.filter(cluster=turn.cluster).exclude(state=BookmarkState.FAILING, message=message)
        changed = stale.update(state=BookmarkState.FAILING, message=message, state_since=now)
        if isinstance(error, ForeignCluster):
            Cluster.objects.filter(pk=turn.cluster.pk).update(foreign_uid=error.foreign_uid)
        Observer.keep(turn.cluster.pk, turn=turn.number, now=now, flushed=bool(changed))
    if changed:
        log.warning(
            "a cluster cannot be watched", cluster=turn.cluster.name, because=getattr(error, "in_full", message)
        )
        seq = Observer.batch_of(turn.cluster.pk)
        announce.cluster_changed(turn.cluster.pk, seq=seq, nodes=(), kinds=("bookmarks",), at=now)


def _note_own_cluster(turn: Turn) -> None:
    """The cluster we know answers again: there is nothing left for a person to decide."""
    if Cluster.objects.filter(pk=turn.cluster.pk).exclude(foreign_uid="").update(foreign_uid=""):
        log.warning("the cluster that is known answers again", cluster=turn.cluster.name)


def _note_clock(observer: Observer, connection: client.Connection, turn: Turn) -> None:
    skew_s, was = connection.clock.skew_s, observer.clock_skew_s
    if skew_s is not None and (was is None or abs(skew_s - was) >= CLOCK_STEP_S):
        observer.clock_skew_s = skew_s
        Observer.objects.filter(pk=observer.pk, turn=turn.number).update(clock_skew_s=skew_s)


def _make_bookmarks(turn: Turn) -> None:
    Bookmark.objects.bulk_create(
        (Bookmark(cluster=turn.cluster, kind=kind, state_since=turn.clock()) for kind in KINDS),
        ignore_conflicts=True,
    )


def _cursors(cluster_id: int) -> dict[str, WatchCursor]:
    bookmarks = Bookmark.objects.filter(cluster_id=cluster_id, kind__in=KINDS)
    found = {bookmark.kind: WatchCursor.of(bookmark) for bookmark in bookmarks}
    return {name: found[name] for name in KINDS}
