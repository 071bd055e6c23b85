"""A worker's turn at watching a cluster: take it, make sure it is that cluster, hold its window, hand it on."""

import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Event

import structlog
from django.db import transaction
from django.utils import timezone

from fleet import announce, kube, wake
from fleet.models import Bookmark, BookmarkState, Cluster, LostTurn, Node, Observer, Operand
from fleet.observe import memory, pools, shutdown
from fleet.observe.flush import Flusher
from fleet.observe.gathering import Gathering
from fleet.observe.kinds import KINDS
from fleet.observe.rows.pod import Places
from fleet.observe.standing import Standing
from fleet.observe.window import Window

TURN_S = 60.0
ASK_AGAIN_S = 5.0

log = structlog.get_logger(__name__)


class WrongCluster(kube.ClusterError):
    """Another cluster answers at the address of the one we know. Its objects must not become our rows."""


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
    """Watch a cluster for a while, if its turn is free; then offer the next turn."""
    won = Observer.take(cluster_id, turn=number, owner=f"{socket.gethostname()}:{os.getpid()}", now=timezone.now())
    if won is None:
        log.debug("the turn is taken, or the message is an old one", cluster=cluster_id, turn=number)
        return
    until = time.monotonic() + seconds * random.uniform(0.9, 1.1)
    turn = Turn(Cluster.objects.get(pk=cluster_id), won, until, stop)
    try:
        _watch(turn)
    except LostTurn as lost:
        log.warning("the turn went to somebody else", cluster=turn.cluster.name, because=str(lost))
        return
    Observer.give_up(cluster_id, turn=won, now=timezone.now())
    wake.wake_observer(cluster_id, won)


def _watch(turn: Turn) -> None:
    _make_bookmarks(turn)
    connection = _reach(turn)
    if connection is None:
        return
    try:
        _hold_window(turn, connection)
    finally:
        connection.close()


def _hold_window(turn: Turn, connection: kube.Connection) -> None:
    cluster_id = turn.cluster.pk
    remembered = memory.recall(cluster_id, turn=turn.number)
    if (agreed := pools.agreed(cluster_id)) != remembered.pools:
        pools.sort_cluster(cluster_id)
        remembered.pools = agreed
    gathering = Gathering(_standings(cluster_id), _places(cluster_id), remembered)
    batch = Observer.objects.values_list("batch", flat=True).get(cluster_id=cluster_id)
    flusher = Flusher(cluster_id, turn=turn.number, batch=batch, clock=turn.clock)
    Window(connection, gathering, flusher, clock=turn.clock, stop=turn.stop, until=turn.until).hold()
    Bookmark.objects.filter(cluster_id=cluster_id, kind__in=gathering.to_list_again).update(resource_version="")
    memory.keep(cluster_id, remembered)


def _reach(turn: Turn) -> kube.Connection | None:
    """A connection to this very cluster. None: the turn was over before there was one."""
    while not turn.is_over:
        try:
            return _connect(turn.cluster)
        except kube.ClusterError as error:
            _note_failure(turn, str(error))
        turn.stop.wait(ASK_AGAIN_S * random.uniform(0.7, 1.0))
    return None


def _connect(cluster: Cluster) -> kube.Connection:
    connection = kube.connect(cluster.kubeconfig, cluster.context)
    uid = kube.kube_system_uid(connection)
    if uid != cluster.uid:
        connection.close()
        raise WrongCluster(
            f"What answers at {connection.server} is another cluster: its kube-system has the UID {uid}, "
            f"{cluster.name} has {cluster.uid}. Nothing of it is taken over.",
        )
    return connection


def _note_failure(turn: Turn, message: str) -> None:
    now = turn.clock()
    with transaction.atomic():
        stale = Bookmark.objects.filter(cluster=turn.cluster).exclude(
            state=BookmarkState.FAILING, message=message[:1000]
        )
        changed = stale.update(state=BookmarkState.FAILING, message=message[:1000], state_since=now)
        Observer.keep(turn.cluster.pk, turn=turn.number, now=now, flushed=bool(changed))
    if changed:
        log.warning("a cluster cannot be watched", cluster=turn.cluster.name, because=message)
        seq = Observer.objects.values_list("batch", flat=True).get(cluster=turn.cluster)
        announce.cluster_changed(turn.cluster.pk, seq=seq, nodes=(), kinds=("bookmarks",), at=now)


def _make_bookmarks(turn: Turn) -> None:
    Bookmark.objects.bulk_create(
        (Bookmark(cluster=turn.cluster, kind=kind, state_since=turn.clock()) for kind in KINDS),
        ignore_conflicts=True,
    )


def _standings(cluster_id: int) -> dict[str, Standing]:
    bookmarks = Bookmark.objects.filter(cluster_id=cluster_id, kind__in=KINDS)
    found = {bookmark.kind: Standing.of(bookmark) for bookmark in bookmarks}
    return {name: found[name] for name in KINDS}


def _places(cluster_id: int) -> Places:
    nodes = Node.objects.filter(cluster_id=cluster_id).with_gpus().values_list("name", flat=True)
    namespaces = Operand.objects.filter(cluster_id=cluster_id).values_list("namespace", flat=True)
    return Places(set(nodes), set(namespaces))
