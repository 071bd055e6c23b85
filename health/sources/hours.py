"""Hourly sums of each cluster's GPUs: in Redis during the hour, in rows afterwards.

Data lost by Redis shortens the observed time, which the rows state.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import structlog
from django.db import DatabaseError, connection, transaction
from redis.exceptions import RedisError

from fleet.history.placements import name_top_owners
from fleet.messages import announce
from fleet.models import Cluster, Observer
from health.models import GpuHour
from health.sources import usage
from health.sources.allocated_hours import HOUR, AllocatedFor, AllocatedHour
from health.sources.intervals import take_due_turn
from health.sources.snapshots import KEPT_S, SnapshotsUnavailable, redis_client, unpacked
from health.telemetry.hours import (
    GAP_AT_MOST_S,
    HOUR_S,
    LASTS,
    PEAKS,
    SUMS,
    GpuHourSums,
    HourTally,
    IdleTime,
    hour_of,
)
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot, no_values

log = structlog.get_logger(__name__)
TABLE = "health_gpuhour"
EVERY_S = 60.0  # a look
OVER_EVERY = timedelta(minutes=2)
WITHOUT_TELEMETRY_AFTER = timedelta(minutes=10)  # the end of an hour; telemetry writes it sooner
AT_ONCE = 1000  # rows a statement
GONE_AT_ONCE = 5000  # rows a transaction: a person's halt must find a gap
UNIQUE = ("cluster", "uuid", "gi_id", "hour")
SUMMED = (
    "seen_s", "busy_s", "utilisation", "tensor", "bandwidth", "temperature", "temperature_max", "power_watts",
    "memory_max_mib", "xids", "ecc_corrected", "nvlink_errors", "throttled",
)  # fmt: skip
ALLOCATED = ("allocated_s", "namespace", "workload")


class KeptHour(msgspec.Struct):
    """An hourly tally in serialised form: columns as bytes of doubles."""

    hour: float
    counted_at: float
    devices: list[GpuDevice]
    columns: dict[str, bytes]


KEPT = msgspec.msgpack.Decoder(KeptHour)


def count(cluster_id: int, snapshot: TelemetrySnapshot, *, now: float) -> None:
    """Adds the time since the last call, once a minute, and writes a completed hour.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    tally = load_tally(cluster_id)
    if tally is None:
        _store_tally(cluster_id, HourTally.begun(snapshot, now=now))
        return
    is_over, gap = hour_of(now) != tally.hour, now - tally.counted_at
    if -GAP_AT_MOST_S <= gap < (0 if is_over else EVERY_S):  # below 0: another worker's clock was ahead
        return
    tally = tally.carried(snapshot.devices)
    is_near = 0 <= gap <= GAP_AT_MOST_S  # a sample belongs to a recent hour only
    if not is_over or is_near:
        tally.add(snapshot, now=now)
    if is_over:
        _write_or_log(cluster_id, tally, now=now)
        tally = _begin_hour(tally, snapshot, now=now, is_near=is_near)
    _store_tally(cluster_id, tally)


def idle_times(cluster_id: int) -> dict[str, dict[str, IdleTime]]:
    """Returns the idle time of each board by node name and UUID, up to the last minute that was counted.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    tally = load_tally(cluster_id)
    return tally.idle_times() if tally else {}


def write_over(cluster_id: int, *, now: datetime) -> None:
    """Writes a completed hour if no further call follows, since its source fell silent or was removed.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    if not take_due_turn(cluster_id, "hour", every=OVER_EVERY, now=now):
        return
    tally = load_tally(cluster_id)
    if tally is not None and _is_unwritten(cluster_id, tally, now=now):
        _write_or_log(cluster_id, tally, now=now.timestamp())
    _record_without_telemetry(cluster_id, now=now)


def _is_unwritten(cluster_id: int, tally: HourTally, *, now: datetime) -> bool:
    if now.timestamp() <= tally.hour + HOUR_S + GAP_AT_MOST_S:  # a look may still add to it
        return False
    return not GpuHour.objects.filter(cluster=cluster_id, hour=datetime.fromtimestamp(tally.hour, UTC)).exists()


def _record_without_telemetry(cluster_id: int, *, now: datetime) -> None:
    """Records who had the GPUs in the last hour, where telemetry did not end it and the cluster was known."""
    over = now.astimezone(UTC) - WITHOUT_TELEMETRY_AFTER
    hour = over.replace(minute=0, second=0, microsecond=0) - HOUR
    known = Cluster.objects.filter(pk=cluster_id, added_at__lt=hour + HOUR)
    if not usage.is_recorded(cluster_id, hour) and known.exists():
        name_top_owners(cluster_id)
        usage.record(cluster_id, hour, AllocatedHour.of(cluster_id, hour, now=now))
        announce.cluster_changed(cluster_id, seq=Observer.batch_of(cluster_id), nodes=(), kinds=("hours",), at=now)


def _begin_hour(tally: HourTally, snapshot: TelemetrySnapshot, *, now: float, is_near: bool) -> HourTally:
    since = hour_of(now) if is_near else now
    lasts = {key: tally.columns[key][: len(snapshot.devices)] for key in LASTS}
    if not is_near:  # nothing was measured for long: idle time begins with the next sample
        lasts["unmeasured_at"] = no_values(len(snapshot.devices))
    begun = HourTally.begun(snapshot, now=since, lasts=lasts)
    if since < now:  # part of the gap in the new hour
        begun.add(snapshot, now=now)
    return begun


def _write_or_log(cluster_id: int, tally: HourTally, *, now: float) -> None:
    """Writes the hour, or logs the error: a role that may not create tables, or a lock.

    Current telemetry is not affected.
    """
    at = datetime.fromtimestamp(now, UTC)
    try:
        number = write(cluster_id, tally, now=at)
    except (DatabaseError, ValueError):
        log.exception("an hour of GPUs is lost", cluster=cluster_id, hour=tally.hour, devices=len(tally.devices))
        return
    if number:
        announce.cluster_changed(cluster_id, seq=Observer.batch_of(cluster_id), nodes=(), kinds=("hours",), at=at)


def write(cluster_id: int, tally: HourTally, *, now: datetime) -> int:
    """Writes rows and returns how many. Writing the same hour again replaces it."""
    hour = datetime.fromtimestamp(tally.hour, UTC)
    name_top_owners(cluster_id)
    allocated = AllocatedHour.of(cluster_id, hour, now=now)
    measured = list(tally.rows())
    found = (_gpu_hour_row(cluster_id, hour, sums, allocated.by(sums.device)) for sums in measured)
    rows = list({(row.uuid, row.gi_id): row for row in found}.values())  # names that were cut may have become one
    if rows:
        provide_partition(hour)
        for first in range(0, len(rows), AT_ONCE):
            GpuHour.objects.bulk_create(
                rows[first : first + AT_ONCE],
                update_conflicts=True,
                unique_fields=UNIQUE,
                update_fields=("node_name", "index", *SUMMED, *ALLOCATED),
            )
    usage.record(cluster_id, hour, allocated, measured)
    return len(rows)


def partition_of(day: datetime) -> str:
    return f"{TABLE}_{day:%Y%m%d}"


def provide_partition(at: datetime) -> None:
    """Creates the partition of a day, if the table is partitioned and it is missing."""
    if connection.vendor != "postgresql":
        return
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    name = connection.ops.quote_name(partition_of(day))
    table = connection.ops.quote_name(TABLE)
    bounds = [day.isoformat(), (day + timedelta(days=1)).isoformat()]
    with transaction.atomic(), connection.cursor() as cursor:
        # Of two that look at once one makes it: the lock ends with the transaction.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [TABLE])
        cursor.execute("SELECT to_regclass(%s)", [partition_of(day)])
        if cursor.fetchone()[0] is None:
            cursor.execute(f"CREATE TABLE {name} PARTITION OF {table} FOR VALUES FROM (%s) TO (%s)", bounds)


def forget_before(before: datetime) -> int:
    """Deletes old rows, and returns how many rows or partitions. A whole partition is dropped after its day."""
    if connection.vendor == "postgresql":
        return _drop_partitions(before)
    some = f"SELECT rowid FROM {TABLE} WHERE hour < %s LIMIT {GONE_AT_ONCE}"  # noqa: S608 - two constants
    gone = 0
    with connection.cursor() as cursor:
        while cursor.execute(f"DELETE FROM {TABLE} WHERE rowid IN ({some})", [before]).rowcount:  # noqa: S608
            gone += cursor.rowcount
    return gone


def _drop_partitions(before: datetime) -> int:
    oldest = partition_of(before.astimezone(UTC))
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass", [TABLE])
        old = sorted(name for (name,) in cursor.fetchall() if name < oldest)
        for name in old:
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(name)}")
    return len(old)


def _gpu_hour_row(cluster_id: int, hour: datetime, sums: GpuHourSums, to: AllocatedFor) -> GpuHour:
    device = sums.device
    return GpuHour(
        cluster_id=cluster_id, uuid=_stored_text(device.uuid, 64), gi_id=_stored_text(device.gi_id, 16), hour=hour,
        node_name=_stored_text(device.node_name, 253), index=device.index,
        **{name: getattr(sums, name) for name in SUMMED},
        allocated_s=to.seconds, namespace=to.namespace, workload=to.workload,
    )  # fmt: skip


def _stored_text(given: str, longest: int) -> str:
    return given.replace("\0", "")[:longest]


def _key_of_cluster(cluster_id: int) -> str:
    return f"quarterdeck:telemetry:{cluster_id}:hour"


def load_tally(cluster_id: int) -> HourTally | None:
    """Returns the stored tally; None if there is none that this version can read."""
    try:
        said: Any = redis_client().get(_key_of_cluster(cluster_id))
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    try:
        kept = KEPT.decode(said or b"")
    except msgspec.MsgspecError:
        return None
    columns = {key: unpacked(packed) for key, packed in kept.columns.items()}
    missing = {key: no_values(len(kept.devices)) for key in LASTS if key not in columns}  # of the version before
    columns |= missing
    if set(columns) != {*SUMS, *PEAKS} or any(len(column) != len(kept.devices) for column in columns.values()):
        return None
    return HourTally(kept.hour, kept.counted_at, kept.devices, columns)


def _store_tally(cluster_id: int, tally: HourTally) -> None:
    columns = {key: column.tobytes() for key, column in tally.columns.items()}
    kept = KeptHour(tally.hour, tally.counted_at, list(tally.devices), columns)
    try:
        redis_client().set(_key_of_cluster(cluster_id), msgspec.msgpack.encode(kept), ex=KEPT_S)
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
