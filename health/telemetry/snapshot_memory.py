"""The memory of a snapshot beside the newest values. Pure.

It holds past counter values, since when latched values and counters are unchanged, and past Xids. The taker of
snapshots keeps it for every source, since exporters that are read directly have no history.
"""

import math
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import gt, le, sub

from health.telemetry.base import STALE_AFTER_S, DeviceXid
from health.telemetry.metrics import METRICS, MetricKind
from health.telemetry.snapshot import NEVER, Checkpoint, MetricColumn, PastXid, TelemetrySnapshot, no_values

CHECKPOINT_S = 1800.0  # between two checkpoints: the growth of counters covers the last half to whole hour
CHECKPOINTS = 2  # checkpoints that are stored
HOUR_S = CHECKPOINT_S * CHECKPOINTS
COUNTERS = tuple(key for key, metric in METRICS.items() if metric.kind == MetricKind.COUNTER)
LAST_SAMPLE_AT = "reporting_devices"  # in a checkpoint: the time of each device's last report
ENERGY = "energy_joules"
# Highest energy of a GPU between the reports of two exporters with different intervals: half a minute at 2 kW, and the
# same for two missed intervals.
APART_J = STALE_AFTER_S * 2_000
VOLATILE = tuple(key for key in COUNTERS if not key.startswith("rows_remapped"))  # remapped rows never reset
XID = "xid"
SLOWED_FOR = ("throttled_thermal", "throttled_board", "throttled_reliability")  # how long, in whatever unit
# Of which is kept since when each device has its value.
LATCHED = (*(key for key, metric in METRICS.items() if metric.kind == MetricKind.LATCHED), *SLOWED_FOR)
PAST_XIDS_AT_MOST = 16  # Xids of one device that are stored


@dataclass(frozen=True)
class Growth:
    amount: float
    since: float  # seconds since the epoch
    goes_on: bool = True  # False: it did grow, and does not now
    hours: float = 1.0  # in which it did; at least 1, and more after a gap in its telemetry

    @property
    def an_hour(self) -> float:
        return self.amount / self.hours


def remember(before: TelemetrySnapshot, snapshot: TelemetrySnapshot) -> list[int]:
    """Writes into `snapshot` the memory of `before`, which has the same devices.

    Returns the positions of devices whose counters restarted: they were reset, or their driver was reloaded.
    """
    anew = restarted_devices(before, snapshot)
    snapshot.latched = {key: _since(before, snapshot, key) for key in LATCHED if key in snapshot.columns}
    snapshot.past_xids = _past_xids(before, snapshot, anew)
    now = snapshot.taken_at
    held = [_held(each, before, snapshot, frozenset(anew)) for each in before.checkpoints]
    if not held or now - held[-1].taken_at >= CHECKPOINT_S or held[-1].taken_at > now:
        held.append(_checkpoint(snapshot))
    snapshot.checkpoints = tuple(held[-CHECKPOINTS:])
    return anew


def put_in_words(snapshot: TelemetrySnapshot, told: Mapping[tuple[str, str], DeviceXid]) -> None:
    """Stores the exporter's text of an Xid with it, for when the gauge shows another one."""
    past = dict(snapshot.past_xids)
    for key, each in told.items():
        known = past.get(key, {}).get(each.xid)
        if known is not None and known.words != each.words:
            past[key] = {**past[key], each.xid: PastXid(known.since, each.words)}
    snapshot.past_xids = past


@dataclass(frozen=True)
class KnownXids:
    """Known Xids of a board without a stored snapshot."""

    xids: Mapping[int, PastXid]  # by number
    counters: Mapping[str, float]  # counters at the time of the last Xid; empty: not recorded


def recall(snapshot: TelemetrySnapshot, told: Mapping[tuple[str, str], KnownXids]) -> None:
    """Restores Xids known from elsewhere, by node and UUID of the board.

    Those are left out that a snapshot would have ended: the board restarted since, or has no counters and its gauge
    shows none. The gauge's own Xid is there already.
    """
    column, past = snapshot.columns.get(XID), dict(snapshot.past_xids)
    counted = _counted(snapshot, told)
    for place, device in enumerate(snapshot.devices):
        board = device.node_name, device.uuid
        if board not in told:
            continue
        shown = column.values[place] if column is not None else NEVER
        is_anew = counters_restarted(told[board].counters, counted[board]) or (
            shown == 0 and not _counts(snapshot, place)
        )
        known = {number: xid for number, xid in told[board].xids.items() if number == shown or not is_anew}
        if not known:
            continue
        past[device.key] = dict([*past.get(device.key, {}).items(), *known.items()][:PAST_XIDS_AT_MOST])
        if shown in known:
            snapshot.latched[XID][place] = known[int(shown)].since
    snapshot.past_xids = past


def _counted(
    snapshot: TelemetrySnapshot, boards: Collection[tuple[str, str]]
) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Returns by board the highest value of each counter among its parts."""
    found: dict[tuple[str, str], dict[str, float]] = {board: {} for board in boards}
    columns = {key: snapshot.columns[key].values for key in VOLATILE if key in snapshot.columns}
    for place, device in enumerate(snapshot.devices):
        its = found.get((device.node_name, device.uuid))
        if its is not None:
            said = ((key, values[place]) for key, values in columns.items())
            its |= {key: max(value, its.get(key, value)) for key, value in said if value == value}
    return found


def counters_restarted(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """Returns whether counters restarted, as `restarted_devices` does, from the counters known at both moments."""
    known = [(key, before[key], now[key]) for key in before if key in now]
    goes_on = any(was > 0 and not _fell(key, was, value) for key, was, value in known)
    return not goes_on and any(_fell(key, was, value) for key, was, value in known)


def growth(snapshot: TelemetrySnapshot, key: str, place: int) -> Growth | None:
    """Returns the growth of a device's counter since the oldest checkpoint; None if unknown."""
    column = snapshot.columns.get(key)
    if column is None or not snapshot.checkpoints:
        return None
    oldest = snapshot.checkpoints[0]
    values = oldest.values.get(key)
    if values is None:
        return None
    amount = column.values[place] - values[place]
    if not amount >= 0:  # NaN: it has no value, or had none
        return None
    goes_on, since = key not in SLOWED_FOR or still_grows(snapshot, key, place), _last_sample_at(oldest, place)
    age_s = snapshot.taken_at - since
    return Growth(amount, since, goes_on, age_s / HOUR_S if age_s > HOUR_S + STALE_AFTER_S else 1.0)


def _last_sample_at(checkpoint: Checkpoint, place: int) -> float:
    """Returns the time of a device's values in a checkpoint; it is earlier if the device was silent then."""
    reporting_devices = checkpoint.values.get(LAST_SAMPLE_AT)
    is_silent = (
        reporting_devices is not None
        and math.isfinite(reporting_devices[place])
        and checkpoint.taken_at - reporting_devices[place] > STALE_AFTER_S
    )
    return reporting_devices[place] if reporting_devices is not None and is_silent else checkpoint.taken_at


def still_grows(snapshot: TelemetrySnapshot, key: str, place: int) -> bool:
    """Returns whether a time counter grew with one of its last samples. One growth is reported for an hour."""
    since = snapshot.latched.get(key)
    return since is not None and since[place] >= snapshot.taken_at - STALE_AFTER_S


def reporting_devices(snapshot: TelemetrySnapshot) -> list[int]:
    oldest = snapshot.taken_at - STALE_AFTER_S
    return [place for place, at in enumerate(snapshot.newest_by_device()) if at >= oldest]


def restarted_devices(before: TelemetrySnapshot, snapshot: TelemetrySnapshot) -> list[int]:
    """Returns the positions of devices whose counters restarted. If only some of them fell, the exporter is wrong."""
    pairs = [
        (key, before.columns[key], snapshot.columns[key])
        for key in VOLATILE
        if key in before.columns and key in snapshot.columns
    ]
    fell = {
        place
        for key, was, now in pairs
        if any(map(gt, was.values, now.values))
        for place, (earlier, later) in enumerate(zip(was.values, now.values, strict=True))
        if _fell(key, earlier, later)
    }
    return [place for place in sorted(fell) if not any(_goes_on(key, was, now, place) for key, was, now in pairs)]


def begun_lately(snapshot: TelemetrySnapshot) -> list[int]:
    """Returns the positions of devices that restarted in the last half to whole hour, by their energy counter."""
    column = snapshot.columns.get(ENERGY)
    then = snapshot.checkpoints[0].values.get(ENERGY) if snapshot.checkpoints else None
    if column is None or then is None:
        return []
    return [place for place, value in enumerate(then) if value == 0 and column.values[place] > 0]


def _fell(key: str, was: float, now: float) -> bool:
    """Returns whether a counter fell. Two exporters of one GPU may alternate, and one lags behind the other.

    Energy always grows, so it may fall by as much as the GPU consumed in between.
    """
    return now < was and not (key == ENERGY and was - now <= APART_J and now > was / 2)


def _goes_on(key: str, was: MetricColumn, now: MetricColumn, place: int) -> bool:
    return (
        now.times[place] > was.times[place]
        and was.values[place] > 0
        and not math.isnan(now.values[place])
        and not _fell(key, was.values[place], now.values[place])
    )


def grown_by(snapshot: TelemetrySnapshot, key: str, amount: float) -> list[int]:
    """Returns the positions of devices whose counter grew by at least `amount`."""
    column = snapshot.columns.get(key)
    values = snapshot.checkpoints[0].values.get(key) if snapshot.checkpoints else None
    if column is None or values is None:
        return []
    return [place for place, grown in enumerate(map(sub, column.values, values)) if grown >= amount]


def grown_an_hour(snapshot: TelemetrySnapshot, key: str, amount: float) -> list[int]:
    """Returns the positions of devices whose counter grew by `amount` an hour, or more, since it was known."""
    places = grown_by(snapshot, key, amount)
    return [place for place in places if (grown := growth(snapshot, key, place)) and grown.an_hour >= amount]


def _since(before: TelemetrySnapshot, snapshot: TelemetrySnapshot, key: str) -> "array[float]":
    """Returns since when each value is unchanged: the sample of its change, or unknown for a first value."""
    column, was, since = snapshot.columns[key], before.columns.get(key), before.latched.get(key)
    kept = since[:] if since is not None else no_values(len(snapshot.devices))
    if was is None or column.values.tobytes() == was.values.tobytes():
        return kept
    for place, (value, earlier) in enumerate(zip(column.values, was.values, strict=True)):
        if earlier == earlier and value != earlier:
            kept[place] = column.times[place]
    return kept


def _past_xids(
    before: TelemetrySnapshot, snapshot: TelemetrySnapshot, anew: Collection[int]
) -> Mapping[tuple[str, str], Mapping[int, PastXid]]:
    """Returns past Xids until the device restarts. Without counters they last until its gauge shows none."""
    column, was = snapshot.columns.get(XID), before.columns.get(XID)
    kept = dict(before.past_xids)
    for place in anew:
        kept.pop(snapshot.devices[place].key, None)
    if column is None or (not anew and was is not None and column.values.tobytes() == was.values.tobytes()):
        return kept
    since = snapshot.latched[XID]
    for place, value in enumerate(column.values):
        if value >= 1:
            key, number = snapshot.devices[place].key, int(value)
            known = kept.get(key, {})
            its = known.get(number)
            if its is None and len(known) < PAST_XIDS_AT_MOST:
                kept[key] = {**known, number: PastXid(since[place])}
            # it disappeared and came back
            elif its is not None and since[place] == since[place] and not since[place] <= its.since:
                kept[key] = {**known, number: PastXid(since[place], its.words)}
        elif value == 0 and kept and not _counts(snapshot, place):
            kept.pop(snapshot.devices[place].key, None)
    return kept


def _counts(snapshot: TelemetrySnapshot, place: int) -> bool:
    return any(snapshot.columns[key].values[place] > 0 for key in VOLATILE if key in snapshot.columns)


def _held(
    checkpoint: Checkpoint, before: TelemetrySnapshot, snapshot: TelemetrySnapshot, anew: Collection[int]
) -> Checkpoint:
    """Returns the checkpoint. A restarted counter grew from zero, and a new one begins at its value."""
    values = {}
    for key in COUNTERS:
        column = snapshot.columns.get(key)
        if column is None:
            continue
        then, last = checkpoint.values.get(key), before.columns.get(key)
        fell = frozenset(place for place in anew if last is not None and column.values[place] < last.values[place])
        if then is not None and not fell and all(map(le, then, column.values)):  # and none is new: nearly always
            values[key] = then
            continue
        values[key] = array("d", then if then is not None else no_values(len(snapshot.devices)))
        for place, (now, was) in enumerate(zip(column.values, values[key], strict=True)):
            if was != was:
                values[key][place] = now
            # One that fell may have come to more than it had at the checkpoint, soon after it began the time before.
            elif place in fell or (_fell(key, was, now) and (place in anew or _stays_less(last, column, place, was))):
                values[key][place] = 0.0
    if (reporting_devices := checkpoint.values.get(LAST_SAMPLE_AT)) is not None:
        values[LAST_SAMPLE_AT] = reporting_devices
    return Checkpoint(checkpoint.taken_at, values)


def _stays_less(before: MetricColumn | None, now: MetricColumn, place: int, was: float) -> bool:
    """Returns whether a counter is lower in two samples.

    A single lower one, while others grow, is an exporter error.
    """
    return before is not None and before.values[place] < was and now.times[place] > before.times[place]


def _checkpoint(snapshot: TelemetrySnapshot) -> Checkpoint:
    counted = {key: snapshot.columns[key].values[:] for key in COUNTERS if key in snapshot.columns}
    return Checkpoint(snapshot.taken_at, {**counted, LAST_SAMPLE_AT: snapshot.newest_by_device()})
