"""The newest telemetry snapshot of each cluster in Redis: each column is two arrays of doubles in device order.

The next round restores data that Redis loses. The device order has a key of its own, so that a column is never read
with another order than it was written in.
"""

import json
import math
import sys
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from redis import Redis
from redis.exceptions import RedisError

from health.telemetry.base import DeviceXid, Parts, TelemetryReading, UnplacedXids
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import Checkpoint, GpuDevice, MetricColumn, PastXid, TelemetrySnapshot
from health.telemetry.snapshot_memory import CHECKPOINTS, COUNTERS, LAST_SAMPLE_AT, LATCHED

KEPT_S = 24 * 3600
TIMEOUT_S = 2.0
DOUBLE = 8  # bytes
OF_CHECKPOINTS = (*COUNTERS, LAST_SAMPLE_AT)
MOST_ORDERS = 16  # device lists cached per process: decoding 40,000 devices takes longer than all their columns
TOP = slice(7 if sys.byteorder == "little" else 0, None, DOUBLE)  # of packed doubles the bytes with sign and exponent
_DEVICES = msgspec.json.Decoder(tuple[GpuDevice, ...])
_EXPORTERS = msgspec.json.Decoder(list[tuple[frozenset[str], list[str]]])
_OF_NODE = msgspec.json.Decoder(tuple[int, tuple[GpuDevice, ...], int])
_clients: dict[str, Redis] = {}
_orders: OrderedDict[str, tuple[GpuDevice, ...]] = OrderedDict()
_orders_lock = Lock()
_exporters: OrderedDict[str, bytes] = OrderedDict()  # by which devices have which series


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot, or the requested part of it, with messages of its source."""

    snapshot: TelemetrySnapshot
    exported: frozenset[str]
    order: str = ""  # the name of its devices and of how they stand: the same name, the same devices
    xids: Mapping[tuple[str, str], DeviceXid] = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)
    unplaced_xids: UnplacedXids = field(default_factory=dict)


class KeptExporters(NamedTuple):
    exported: frozenset[str]  # by any of them now
    by_node: Mapping[str, frozenset[str]]  # metrics by node, exported now or within a day


class SnapshotsUnavailable(Exception):
    """Redis does not answer, so current GPU telemetry is unknown."""


@dataclass(frozen=True)
class SnapshotKeys:
    prefix: str

    @property
    def devices(self) -> str:
        return f"{self.prefix}:devices"

    @property
    def nodes(self) -> str:
        return f"{self.prefix}:nodes"

    @property
    def exporters(self) -> str:
        return f"{self.prefix}:exporters"

    def column(self, metric: str) -> str:
        return f"{self.prefix}:column:{metric}"

    def latched(self, metric: str) -> str:
        return f"{self.prefix}:latched:{metric}"

    def checkpoint(self, number: int, metric: str) -> str:
        return f"{self.prefix}:checkpoint:{number}:{metric}"

    @property
    def remembered(self) -> list[str]:
        of_checkpoints = [self.checkpoint(number, key) for number in range(CHECKPOINTS) for key in OF_CHECKPOINTS]
        return [*map(self.latched, LATCHED), *of_checkpoints]

    @property
    def everything(self) -> list[str]:
        return [self.devices, self.nodes, self.exporters, *map(self.column, METRICS), *self.remembered]


def store(cluster_id: int, taken: TelemetryReading) -> None:
    """Stores the snapshot.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    snapshot = taken.snapshot
    devices = msgspec.json.encode(snapshot.devices)
    order = sha256(devices).hexdigest()[:16]
    keys = _keys(cluster_id, order)
    head = {
        "order": order,
        "taken_at": snapshot.taken_at,
        "exported": sorted(taken.exported),
        "checkpoints": [each.taken_at for each in snapshot.checkpoints],
        "parts": [
            [*key, metric, part, value]
            for key, metrics in taken.parts.items()
            for metric, parts in metrics.items()
            for part, value in parts.items()
        ],
        "unplaced_xids": [
            [node, told.xid, told.words] for node, every in taken.unplaced_xids.items() for told in every
        ],
        "xids": [[*key, told.xid, told.words] for key, told in taken.xids.items()],
        "past_xids": [
            [*key, xid, told.since if math.isfinite(told.since) else None, told.words]
            for key, by_number in snapshot.past_xids.items()
            for xid, told in by_number.items()
        ],
    }
    try:
        before = _head_of(cluster_id)
        is_known = redis_client().exists(keys.devices, keys.nodes) == len((keys.devices, keys.nodes))
        with redis_client().pipeline(transaction=True) as pipe:
            if before is not None and before["order"] != order:
                pipe.delete(*_keys(cluster_id, before["order"]).everything)
            if is_known:
                pipe.expire(keys.devices, KEPT_S)
                pipe.expire(keys.nodes, KEPT_S)
            else:
                _keep_devices(pipe, keys, devices, snapshot.devices)
            for key, column in snapshot.columns.items():
                pipe.set(keys.column(key), column.values.tobytes() + column.times.tobytes(), ex=KEPT_S)
            pipe.set(keys.exporters, _exporters_of(snapshot, order), ex=KEPT_S)
            for name, values in _remembered(snapshot, keys):
                pipe.set(name, values.tobytes(), ex=KEPT_S)
            pipe.set(_key_of_head(cluster_id), json.dumps(head), ex=KEPT_S)
            pipe.execute()
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error


def _keep_devices(pipe: Any, keys: SnapshotKeys, written: bytes, devices: Iterable[GpuDevice]) -> None:
    """Stores a device order that is new, or that Redis lost."""
    pipe.set(keys.devices, written, ex=KEPT_S)
    if ranges := _ranges(devices):
        pipe.hset(keys.nodes, mapping=ranges)
        pipe.expire(keys.nodes, KEPT_S)


def newest(cluster_id: int, metrics: Collection[str] | None = None) -> StoredSnapshot | None:
    """Returns the whole snapshot with its memory, or only some columns; None if there is none.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    wanted = list(METRICS if metrics is None else metrics)
    try:
        head = _head_of(cluster_id)
        if head is None:
            return None
        keys = _keys(cluster_id, head["order"])
        devices = _devices_of(head["order"], keys)
        names = [*map(keys.column, wanted), *(keys.remembered if metrics is None else ())]
        found: list[Any] = redis_client().mget(names) if names else []
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    if devices is None:
        return None
    snapshot = TelemetrySnapshot(head["taken_at"], devices)
    length = len(snapshot.devices)
    for key, packed in zip(wanted, found, strict=False):
        if packed is not None and len(packed) == 2 * DOUBLE * length:
            half = DOUBLE * length
            snapshot.columns[key] = MetricColumn(unpacked(packed[:half]), unpacked(packed[half:]))
    if metrics is None:
        kept = dict(zip(keys.remembered, found[len(wanted) :], strict=True))
        snapshot.past_xids = _past_xids(head)
        _restore_checkpoints(
            snapshot, head["checkpoints"], {name: packed for name, packed in kept.items() if packed}, keys
        )
    return _stored_snapshot(head, snapshot)


def _devices_of(order: str, keys: SnapshotKeys) -> tuple[GpuDevice, ...] | None:
    """Returns the devices of this order, of any cluster; None if they are lost."""
    with _orders_lock:
        if order in _orders:
            _orders.move_to_end(order)
            return _orders[order]
    said: Any = redis_client().get(keys.devices)
    if said is None:
        return None
    devices = _DEVICES.decode(said)
    with _orders_lock:
        _orders[order] = devices
        while len(_orders) > MOST_ORDERS:
            _orders.popitem(last=False)
    return devices


def _restore_checkpoints(
    snapshot: TelemetrySnapshot, taken_at: Sequence[float], kept: Mapping[str, bytes], keys: SnapshotKeys
) -> None:
    arrays = {name: unpacked(packed) for name, packed in kept.items() if len(packed) == DOUBLE * len(snapshot.devices)}
    snapshot.latched = {key: arrays[name] for key in LATCHED if (name := keys.latched(key)) in arrays}
    snapshot.checkpoints = tuple(
        Checkpoint(
            at, {key: arrays[name] for key in OF_CHECKPOINTS if (name := keys.checkpoint(number, key)) in arrays}
        )
        for number, at in enumerate(taken_at)
    )


def _remembered(snapshot: TelemetrySnapshot, keys: SnapshotKeys) -> "Iterable[tuple[str, array[float]]]":
    for key, since in snapshot.latched.items():
        yield keys.latched(key), since
    for number, each in enumerate(snapshot.checkpoints):
        for key, values in each.values.items():
            yield keys.checkpoint(number, key), values


def of_node(cluster_id: int, node_name: str) -> StoredSnapshot | None:
    """Returns the devices of one node with all columns; None if the snapshot does not contain it.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        head = _head_of(cluster_id)
        if head is None:
            return None
        keys, redis = _keys(cluster_id, head["order"]), redis_client()
        said: Any = redis.hget(keys.nodes, node_name)
        if said is None:
            return None
        start, devices, length = _OF_NODE.decode(said)
        with redis.pipeline(transaction=False) as pipe:
            for key in METRICS:
                for first in (start, length + start):
                    pipe.getrange(keys.column(key), first * DOUBLE, (first + len(devices)) * DOUBLE - 1)
            parts = pipe.execute()
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    snapshot = TelemetrySnapshot(head["taken_at"], devices)
    for number, key in enumerate(METRICS):
        values, times = parts[2 * number : 2 * number + 2]
        if len(values) == len(times) == DOUBLE * len(devices):
            snapshot.columns[key] = MetricColumn(unpacked(values), unpacked(times))
    return _stored_snapshot(head, snapshot)


def exporters(cluster_id: int) -> KeptExporters | None:
    """Returns the exporters with two Redis requests, without columns; None if there is no snapshot.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        head = _head_of(cluster_id)
        if head is None:
            return None
        said: Any = redis_client().get(_keys(cluster_id, head["order"]).exporters)
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    by_node = {node: has for has, nodes in _EXPORTERS.decode(said) for node in nodes} if said is not None else {}
    return KeptExporters(frozenset(head["exported"]), by_node)


def _exporters_of(snapshot: TelemetrySnapshot, order: str) -> bytes:
    """Returns packed groups of nodes with the same metrics, recomputed only if a device's series changed.

    The top byte of a time distinguishes NaN, minus infinity and an instant.
    """
    seen = sha256(order.encode())
    for key, column in snapshot.columns.items():
        seen.update(key.encode())
        seen.update(column.times.tobytes()[TOP])
    mark = seen.hexdigest()
    with _orders_lock:
        known = _exporters.get(mark)
    if known is not None:
        return known
    alike: dict[tuple[str, ...], list[str]] = {}
    for node, metrics in snapshot.metrics_of_nodes().items():
        alike.setdefault(tuple(metrics), []).append(node)
    made = msgspec.json.encode(list(alike.items()))
    with _orders_lock:
        _exporters[mark] = made
        while len(_exporters) > MOST_ORDERS:
            _exporters.popitem(last=False)
    return made


def forget(cluster_id: int) -> None:
    """Deletes the snapshot.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        head = _head_of(cluster_id)
        if head is not None:
            redis_client().delete(_key_of_head(cluster_id), *_keys(cluster_id, head["order"]).everything)
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error


def _keys(cluster_id: int, order: str) -> SnapshotKeys:
    return SnapshotKeys(f"quarterdeck:telemetry:{cluster_id}:{order}")


def _key_of_head(cluster_id: int) -> str:
    return f"quarterdeck:telemetry:{cluster_id}:head"


def _head_of(cluster_id: int) -> dict[str, Any] | None:
    said: Any = redis_client().get(_key_of_head(cluster_id))
    return None if said is None else msgspec.json.decode(said)


def _stored_snapshot(head: Mapping[str, Any], snapshot: TelemetrySnapshot) -> StoredSnapshot:
    xids = {(uuid, gi_id): DeviceXid(xid, words) for uuid, gi_id, xid, words in head["xids"]}
    parts: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for uuid, gi_id, metric, part, value in head.get("parts", ()):  # a frame of before has none
        parts.setdefault((uuid, gi_id), {}).setdefault(metric, {})[part] = value
    unplaced: dict[str, list[DeviceXid]] = {}
    for node, xid, words in head.get("unplaced_xids", ()):  # a frame of before has none
        unplaced.setdefault(node, []).append(DeviceXid(xid, words))
    return StoredSnapshot(snapshot, frozenset(head["exported"]), head["order"], xids, parts, unplaced)


def _past_xids(head: Mapping[str, Any]) -> Mapping[tuple[str, str], Mapping[int, PastXid]]:
    found: dict[tuple[str, str], dict[int, PastXid]] = {}
    for uuid, gi_id, xid, since, words in head.get("past_xids", ()):  # an older snapshot has none
        found.setdefault((uuid, gi_id), {})[xid] = PastXid(math.nan if since is None else since, words)
    return found


def _ranges(devices: Iterable[GpuDevice]) -> dict[Any, Any]:
    """Returns the first position and the devices of each node, and the column length. Devices are sorted by node."""
    of_nodes: dict[str, tuple[int, list[GpuDevice]]] = {}
    length = 0
    for place, device in enumerate(devices):
        of_nodes.setdefault(device.node_name, (place, []))[1].append(device)
        length = place + 1
    return {name: msgspec.json.encode([start, found, length]) for name, (start, found) in of_nodes.items()}


def unpacked(packed: bytes) -> "array[float]":
    values = array("d")
    values.frombytes(packed)
    return values


def redis_client() -> Redis:
    """Returns one client per process and address. It keeps its connections, and threads may share it."""
    url = settings.REDIS_URL
    if url not in _clients:
        _clients.setdefault(url, Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S))
    return _clients[url]
