"""One round at a cluster's exporters: whether it is due and possible, and its result.

If a cluster has more exporters than half a minute allows, none is read: partial data would look complete.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from typing import Any

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Sum

from fleet.freshness.kinds import NODES, PODS
from fleet.messages import announce
from fleet.models import (
    Bookmark,
    BookmarkState,
    Cluster,
    ExporterReading,
    ExporterRound,
    LostLease,
    Node,
    Observer,
    Operand,
    Pod,
)
from fleet.models import ExportersState as State
from fleet.models.exporter import ASKED_AT_MOST, ROUND_LEASE
from gpu.operands import EXPORTERS
from health.announce import telemetry_changed
from health.exporters.requests import ExporterAnswer, answers
from health.exporters.snapshots import contested_in, exporter_reading, has_prometheus
from health.exporters.storage import Keeper
from health.sources import minutes, snapshots
from health.sources.storage import store_snapshot_of_round
from health.telemetry.exposition import NodeSamples
from health.telemetry.identity import nameless, notes_on_claims, untrue_name
from health.telemetry.snapshot import TelemetrySnapshot
from kube import client
from wording.lists import names
from wording.numbers import count

A_BATCH = 25  # readings a transaction
UNSEEN_AGAIN = timedelta(minutes=2)
NOT_ASKED_AGAIN = timedelta(seconds=10)  # delay after a round without requests, which costs one query
ODD_NAMED = 3  # series of a node
NEVER = Event()  # never set

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Outcome:
    state: State
    message: str = ""
    exporters: int = 0
    answered: int = 0
    has_changed: bool = False
    again: timedelta | None = None  # None: when the next round is due


def ask(cluster: Cluster, *, clock: Callable[[], datetime], stop: Event = NEVER) -> Outcome | None:
    """Reads the exporters; None if it was not due, another worker reads them, or it was stopped."""
    epoch = ExporterRound.take(cluster.pk, now=clock())
    if epoch is None:
        return None
    try:
        outcome = _run_leased_round(cluster, epoch, clock=clock, stop=stop)
        if stop.is_set():
            ExporterRound.keep(cluster.pk, epoch=epoch, lease_until=clock(), next_look_at=clock())
            return None
        _end_round(cluster, epoch, outcome, now=clock())
    except LostLease as lost:
        log.warning("somebody else asks these exporters by now", cluster=cluster.name, reason=str(lost))
        return None
    return outcome


def _run_leased_round(cluster: Cluster, epoch: int, *, clock: Callable[[], datetime], stop: Event) -> Outcome:
    marks, now = list(Bookmark.objects.filter(cluster=cluster, kind__in=(NODES, PODS))), clock()
    if {mark.kind for mark in marks if mark.is_fresh(now=now)} != {NODES, PODS}:
        return _outcome_without_query(marks)
    number = _count_exporters(cluster)
    pods = _pods(cluster) if number <= ASKED_AT_MOST else []
    number = max(number, len(pods))
    if number > ASKED_AT_MOST:
        return Outcome(State.TOO_MANY, _too_many(number), exporters=number)
    if not pods:
        return Outcome(State.NONE, "Quarterdeck sees no GPU exporter pod in this cluster.")
    try:
        return _ask_all(cluster, epoch, pods, clock=clock, stop=stop)
    except client.ClusterError as error:
        return Outcome(State.UNSEEN, str(error), exporters=len(pods), again=UNSEEN_AGAIN)


def _outcome_without_query(marks: Iterable[Bookmark]) -> Outcome:
    """Returns the result for a cluster whose nodes or pods are not live."""
    if not marks or any(mark.state == BookmarkState.LISTING and mark.listed_at is None for mark in marks):
        message = (
            "The cluster's nodes and pods are being listed for the first time. After that, Quarterdeck "
            "queries the exporters."
        )
        return Outcome(State.WAITING, message, again=NOT_ASKED_AGAIN)
    message = "The cluster cannot be observed, so its exporters are not queried."
    return Outcome(State.UNSEEN, message, again=NOT_ASKED_AGAIN)


def _count_exporters(cluster: Cluster) -> int:
    """Returns the number of exporters from their DaemonSets, without reading 40,000 pods."""
    sets = Operand.objects.filter(cluster=cluster, operand__in=EXPORTERS)
    return sets.aggregate(number=Sum("desired"))["number"] or 0


def _too_many(number: int) -> str:
    return (
        f"The cluster has {number} exporters, and Quarterdeck queries at most {ASKED_AT_MOST} through the API "
        "server, so it queries none. Add a Prometheus for the GPU metrics. The GPUs of a pod are known only from "
        "DRA or the kubelet."
    )


def _pods(cluster: Cluster) -> list[Pod]:
    """Returns one exporter pod per node, the longest unread first."""
    rows = Pod.objects.filter(cluster=cluster, operand__in=EXPORTERS, deleted_at=None).exclude(node_name="")
    rows = rows.not_done().only("namespace", "name", "node_name", "phase", "operand")
    pods = {pod.node_name: pod for pod in rows.order_by("is_ready", "created_at")[: 2 * ASKED_AT_MOST + 2]}
    tried = dict(ExporterReading.objects.filter(cluster=cluster).values_list("node_name", "tried_at"))
    never = [pod for node_name, pod in pods.items() if node_name not in tried]
    return never + sorted((pods[name] for name in tried.keys() & pods.keys()), key=lambda pod: tried[pod.node_name])


def _ask_all(
    cluster: Cluster, epoch: int, pods: Sequence[Pod], *, clock: Callable[[], datetime], stop: Event
) -> Outcome:
    """Reads all exporters.

    :raises ClusterError: when another cluster answers, or none
    """
    with client.reach(cluster.kubeconfig, cluster.context, uid=cluster.uid) as connection:
        keeper, batch, forbidden = Keeper.of(cluster, epoch), list[ExporterAnswer](), ""
        samples: dict[str, NodeSamples] = {}
        for answer in answers(connection, pods, stop=stop):
            batch.append(answer)
            forbidden = answer.refused if answer.is_forbidden else forbidden
            if not answer.refused:
                samples[answer.node_name] = answer.samples
            if len(batch) == A_BATCH:
                keeper.keep(batch, now=clock())
                batch = []
    gone = sorted(set(keeper.known) - {pod.node_name for pod in pods})
    keeper.keep(
        [*batch, *(ExporterAnswer(name, refused="No exporter pod is seen on this node.") for name in gone)], now=clock()
    )
    nodes = frozenset(Node.objects.filter(cluster=cluster).values_list("name", flat=True))
    _store_snapshot(cluster, epoch, samples, nodes=nodes, now=clock())
    state = State.FORBIDDEN if forbidden else State.ASKED
    odd = " ".join(
        filter(None, (*_untrue(samples, nodes), _unread(samples), _nameless(samples), _impossible_values_note(samples)))
    )
    return Outcome(state, forbidden or odd, len(pods), keeper.answered, keeper.has_changed)


def _untrue(samples: Mapping[str, NodeSamples], nodes: Collection[str]) -> tuple[str, ...]:
    """Returns notes on impossible claims of exporters about their node or GPUs, as for a Prometheus."""
    named = sorted((node, name) for node, each in samples.items() for name in each.called if name in nodes)
    return notes_on_claims([untrue_name(*pair) for pair in named if pair[0] != pair[1]], contested_in(samples))


def _unread(samples: Mapping[str, NodeSamples]) -> str:
    """Returns a note on exporters with GPU series none of which is read; empty if there are none."""
    where = sorted(node for node, each in samples.items() if each.unread)
    if not where:
        return ""
    return f"Only unsupported GPU series, such as {samples[where[0]].unread}, on {names(where)}."


def _nameless(samples: Mapping[str, NodeSamples]) -> str:
    """Returns a note on series without a GPU; empty if there are none."""
    where = sorted(node for node, each in samples.items() if each.nameless)
    number = sum(each.nameless for each in samples.values())
    return f"{nameless(number)}: on {names(where)}." if where else ""


def _impossible_values_note(samples: Mapping[str, NodeSamples]) -> str:
    """Returns a note on impossible values, as for a Prometheus; empty if there are none."""
    where = [(series, node, number) for node, each in samples.items() for series, number in each.impossible.items()]
    named = sorted(one for one in where if one[2])
    rest = len(named) - ODD_NAMED
    parts = [f"{count(number, 'value')} of {series} on {node}" for series, node, number in named[:ODD_NAMED]]
    more = f" and {rest} more like these" if rest > 0 else ""
    return f"Impossible values were left out: {', '.join(parts)}{more}." if parts else ""


def _store_snapshot(
    cluster: Cluster, epoch: int, samples: Mapping[str, NodeSamples], *, nodes: Collection[str], now: datetime
) -> None:
    """Stores the snapshot.

    :raises LostLease: when another worker has taken the round over
    """
    try:
        taken = exporter_reading(cluster, samples, nodes=nodes, now=now.timestamp())
        if taken is not None:
            its = partial(ExporterRound.keep, cluster.pk, epoch=epoch, lease_until=now + ROUND_LEASE)
            store_snapshot_of_round(cluster.pk, taken, assert_lease=its, now=now.timestamp())
            _keep_minute(cluster, taken.snapshot, assert_lease=its, now=now)
    except snapshots.SnapshotsUnavailable as error:
        # Who holds which GPU is kept all the same; the pages of nodes say that Redis is away.
        log.warning("what exporters say of GPUs is not kept", cluster=cluster.name, reason=str(error))


def _keep_minute(
    cluster: Cluster, snapshot: TelemetrySnapshot, *, assert_lease: Callable[[], None], now: datetime
) -> None:
    """Stores the minute. A failed write loses this minute of the plots, and nothing else of the round.

    :raises LostLease: when another worker has taken the round over
    """
    try:
        minutes.write_minute(cluster.pk, snapshot, assert_lease=assert_lease, now=now.timestamp())
    except DatabaseError:
        log.exception("a minute of GPUs is lost", cluster=cluster.name)


def _end_round(cluster: Cluster, epoch: int, outcome: Outcome, *, now: datetime) -> None:
    """Writes the result, releases the lease, and deletes rows of departed nodes."""
    before = ExporterRound.objects.get(cluster=cluster)
    columns: dict[str, Any] = {"state": outcome.state, "message": outcome.message[:500], "lease_until": now}
    columns |= {"exporters": outcome.exporters, "answered": outcome.answered}
    columns["state_since"] = before.state_since if before.state == outcome.state else now
    columns |= {"read_at": now} if outcome.answered else {}
    columns |= {"next_look_at": now + outcome.again} if outcome.again else {}
    with transaction.atomic():
        ExporterRound.keep(cluster.pk, epoch=epoch, **columns)
        _useless(cluster, outcome.state).delete()
    if before.state != outcome.state:
        log.info("exporters are asked", cluster=cluster.name, state=str(outcome.state), reason=outcome.message)
    if outcome.answered and not has_prometheus(cluster):
        telemetry_changed(cluster.pk, at=now)
    if outcome.has_changed or (before.state, before.message) != (outcome.state, columns["message"]):
        _announce(cluster, at=now)


def _useless(cluster: Cluster, state: State):
    rows = ExporterReading.objects.filter(cluster=cluster)
    if state in (State.NONE, State.TOO_MANY):
        return rows  # no longer read, so its last answer stays
    return rows.exclude(node_name__in=Node.objects.filter(cluster=cluster).values("name"))


def _announce(cluster: Cluster, *, at: datetime) -> None:
    announce.cluster_changed(cluster.pk, seq=Observer.batch_of(cluster.pk), nodes=(), kinds=("exporters",), at=at)
