"""What a frame remembers beside the newest: what counters had come to, and since when a latched value is so. Pure.

Both are kept by who takes frames, so that any source has them: an exporter that is asked directly has no history.
"""

from array import array
from dataclasses import dataclass
from operator import gt, le

from health.telemetry.frame import Checkpoint, Frame, MetricColumn, unsaid
from health.telemetry.metrics import METRICS, MetricKind

CHECKPOINT_S = 1800.0  # between two: what a counter grew is told of the last half to whole hour
CHECKPOINTS = 2  # that are kept
COUNTERS = tuple(key for key, metric in METRICS.items() if metric.kind == MetricKind.COUNTER)
VOLATILE = tuple(key for key in COUNTERS if not key.startswith("rows_remapped"))  # those are the board's, for good
LATCHED = tuple(key for key, metric in METRICS.items() if metric.kind == MetricKind.LATCHED)


@dataclass(frozen=True)
class Growth:
    amount: float
    since: float  # seconds since the epoch


def remember(before: Frame, frame: Frame) -> None:
    """Write into `frame` what it keeps of `before`, which has the same devices and was carried to them."""
    frame.latched = {key: _since(before, frame, key) for key in LATCHED if key in frame.columns}
    now = frame.taken_at
    held = [_held(each, frame) for each in before.checkpoints]
    if not held or now - held[-1].taken_at >= CHECKPOINT_S or held[-1].taken_at > now:
        held.append(_checkpoint(frame))
    frame.checkpoints = tuple(held[-CHECKPOINTS:])


def growth(frame: Frame, key: str, place: int) -> Growth | None:
    """How much a counter of a device grew since the oldest checkpoint. None: nobody can tell."""
    column = frame.columns.get(key)
    if column is None or not frame.checkpoints:
        return None
    oldest = frame.checkpoints[0]
    values = oldest.values.get(key)
    if values is None:
        return None
    amount = column.values[place] - values[place]
    return Growth(amount, oldest.taken_at) if amount == amount else None  # NaN: it has no value, or had none


def begun_anew(before: Frame, frame: Frame) -> list[int]:
    """The places of devices that count from nothing again: they were reset, or their driver was loaded anew.

    `before` has the same devices. One counter that fell while another went on is an exporter's error.
    """
    pairs = [
        (before.columns[key], frame.columns[key]) for key in VOLATILE if key in before.columns and key in frame.columns
    ]
    fell = {
        place
        for was, now in pairs
        if any(map(gt, was.values, now.values))
        for place, (earlier, later) in enumerate(zip(was.values, now.values, strict=True))
        if earlier > later
    }
    return [place for place in sorted(fell) if not any(_goes_on(was, now, place) for was, now in pairs)]


def _goes_on(was: MetricColumn, now: MetricColumn, place: int) -> bool:
    return now.times[place] > was.times[place] and 0 < was.values[place] <= now.values[place]


def grown_by(frame: Frame, key: str, amount: float) -> list[int]:
    """The places of devices whose counter grew by as much, or more."""
    column = frame.columns.get(key)
    values = frame.checkpoints[0].values.get(key) if frame.checkpoints else None
    if column is None or values is None:
        return []
    pairs = zip(column.values, values, strict=True)
    return [place for place, (now, then) in enumerate(pairs) if now - then >= amount]


def _since(before: Frame, frame: Frame, key: str) -> "array[float]":
    """What is another value than before is so since its sample; what was there from the first, since who knows when."""
    column, was, since = frame.columns[key], before.columns.get(key), before.latched.get(key)
    kept = since[:] if since is not None else unsaid(len(frame.devices))
    if was is None or column.values.tobytes() == was.values.tobytes():
        return kept
    for place, (value, earlier) in enumerate(zip(column.values, was.values, strict=True)):
        if earlier == earlier and value != earlier:
            kept[place] = column.times[place]
    return kept


def _held(checkpoint: Checkpoint, frame: Frame) -> Checkpoint:
    """A counter that is less than it was began anew: it grew from nothing. One that is new begins as it is."""
    values = {}
    for key in COUNTERS:
        column = frame.columns.get(key)
        if column is None:
            continue
        then = checkpoint.values.get(key)
        if then is not None and all(map(le, then, column.values)):  # none began anew, and none is new: nearly always
            values[key] = then
            continue
        pairs = zip(column.values, then if then is not None else unsaid(len(frame.devices)), strict=True)
        values[key] = array(
            "d", (was if was <= now or now != now else 0.0 if was == was else now for now, was in pairs)
        )
    return Checkpoint(checkpoint.taken_at, values)


def _checkpoint(frame: Frame) -> Checkpoint:
    return Checkpoint(frame.taken_at, {key: frame.columns[key].values[:] for key in COUNTERS if key in frame.columns})
