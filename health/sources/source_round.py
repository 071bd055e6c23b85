"""One round at a cluster's telemetry source: whether it is due, its answer, and the result."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from threading import Lock
from typing import Any

import structlog

from fleet.messages import announce
from fleet.models import Cluster, LostLease, Node, Observer, Pod
from gpu.operands import EXPORTERS
from health.announce import telemetry_changed
from health.models import SourceState, TelemetrySource
from health.models.telemetry_source import AGAIN_AFTER, ROUND_LEASE
from health.sources import snapshots
from health.sources.addresses import address_of
from health.sources.secrets import NoSecret
from health.sources.storage import store_snapshot_of_round
from health.sources.xid_recall import add_counted_xids, recall_xids
from health.telemetry.base import TelemetryReading
from health.telemetry.identity import Whereabouts
from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.client import Address, Client
from health.telemetry.prometheus.source import Known, Prometheus
from health.telemetry.promql import Matchers

MOST_KNOWN = 64  # clusters whose last result a worker caches
log = structlog.get_logger(__name__)
# by source and the time of its last change by a person
_known: OrderedDict[tuple[int, datetime], Known] = OrderedDict()
_known_lock = Lock()


@dataclass(frozen=True)
class Round:
    """The queries of a round, and their address."""

    address: Address
    matchers: Matchers
    where: Whereabouts


def ask(cluster_id: int, *, clock: Callable[[], datetime]) -> TelemetrySource | None:
    """Queries the source; None if there is no source, it is not due, or another worker queries it."""
    took = TelemetrySource.take(cluster_id, now=clock())
    if took is None:
        return None
    source, epoch = took
    try:
        columns = _query_source(source, epoch, clock=clock)
        TelemetrySource.keep(source.pk, epoch=epoch, lease_until=clock(), **columns)
    except LostLease as lost:
        log.warning("somebody else asks this source by now, or it was changed", reason=str(lost))
        return None
    if columns["state"] == SourceState.ANSWERING:
        telemetry_changed(cluster_id, at=columns["answered_at"])
    if columns["state"] != source.state:
        log.info("telemetry", cluster=source.cluster.name, state=columns["state"], reason=columns["message"])
        announce.cluster_changed(
            cluster_id, seq=Observer.batch_of(cluster_id), nodes=(), kinds=("telemetry",), at=clock()
        )
    return source


def _query_source(source: TelemetrySource, epoch: int, *, clock: Callable[[], datetime]) -> dict[str, Any]:
    """Returns the columns to write.

    :raises LostLease: when another worker has taken the round over, or the source was changed meanwhile
    """
    begun = time.monotonic()
    try:
        taken = taken_from(source, clock=clock)
        its = partial(TelemetrySource.keep, source.pk, epoch=epoch, lease_until=clock() + ROUND_LEASE)
        store_snapshot_of_round(source.cluster_id, taken, assert_lease=its, now=taken.snapshot.taken_at)
    except (Unusable, NoSecret) as error:
        return _silent_columns(source, str(error), now=clock())
    except snapshots.SnapshotsUnavailable as error:
        return _silent_columns(source, f"Redis does not store the source's answer: {error}", now=clock())
    now = clock()
    return {
        "state": SourceState.ANSWERING,
        "state_since": source.state_since if source.state == SourceState.ANSWERING else now,
        "message": "",
        "notes": list(taken.notes),
        "answered_at": now,
        "took_ms": int((time.monotonic() - begun) * 1000),
        "devices": len(taken.snapshot.devices),
        "exported": sorted(taken.exported),
        "clock_offset_s": taken.clock_offset_s,
        "exploding": [asdict(each) for each in taken.exploding[:20]],
    }


def _silent_columns(source: TelemetrySource, reason: str, *, now: datetime) -> dict[str, Any]:
    return {
        "state": SourceState.SILENT,
        "state_since": source.state_since if source.state == SourceState.SILENT else now,
        "message": reason[:600],
        "next_look_at": now + AGAIN_AFTER,
    }


def taken_from(source: TelemetrySource, *, clock: Callable[[], datetime]) -> TelemetryReading:
    """Returns the source's current answer on top of the stored snapshot.

    :raises Unusable: when the source gives no answer
    :raises NoSecret: when its password or token is missing
    :raises SnapshotsUnavailable: when Redis does not answer
    """
    asked = round_of(source)
    kept, key = snapshots.newest(source.cluster_id), (source.pk, source.changed_at)
    with Client(asked.address) as client:
        prometheus = Prometheus(client, asked.matchers, asked.where, lambda: clock().timestamp(), _known.get(key))
        before = kept.snapshot if kept else None
        taken = prometheus.take(before, now=clock().timestamp())
    recall_xids(source.cluster_id, before, taken.snapshot)
    add_counted_xids(taken)
    if prometheus.known is not None:
        _keep_known(key, prometheus.known)
    return taken


def _keep_known(key: tuple[int, datetime], known: Known) -> None:
    """Caches what the round found. The entry with the oldest round is removed first."""
    with _known_lock:
        _known[key] = known
        _known.move_to_end(key)
        while len(_known) > MOST_KNOWN:
            _known.popitem(last=False)


def round_of(source: TelemetrySource) -> Round:
    """Returns the round of a source.

    :raises NoSecret: when its password or token is missing
    """
    return Round(address_of(source), Matchers(source.matchers), _node_places(source.cluster))


def _node_places(cluster: Cluster) -> Whereabouts:
    nodes = frozenset(Node.objects.filter(cluster=cluster).values_list("name", flat=True))
    pods = Pod.objects.filter(cluster=cluster, operand__in=EXPORTERS, deleted_at=None).exclude(node_name="")
    return Whereabouts(nodes, dict(pods.order_by().values_list("name", "node_name")))
