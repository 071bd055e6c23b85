"""What a frame remembers beside the newest. Pure.

What counters had come to, since when a latched value is so and a counter has not moved, and which Xids there were. All
are kept by who takes frames, so that any source has them: an exporter that is asked directly has no history.
"""

import math
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import gt, le, sub

from health.telemetry.base import STALE_AFTER_S, XidTold
from health.telemetry.metrics import METRICS, MetricKind
from health.telemetry.snapshot import NEVER, Checkpoint, Frame, MetricColumn, PastXid, unsaid

CHECKPOINT_S = 1800.0  # between two: what a counter grew is told of the last half to whole hour
CHECKPOINTS = 2  # that are kept
HOUR_S = CHECKPOINT_S * CHECKPOINTS
COUNTERS = tuple(key for key, metric in METRICS.items() if metric.kind == MetricKind.COUNTER)
HEARD = "heard"  # of a checkpoint: when each device had last said anything by then
ENERGY = "energy_joules"
# What a board draws at most between what two exporters of it said, each of which collects when it likes: half a minute
# at 2 kW, and as much for one that missed it twice.
APART_J = STALE_AFTER_S * 2_000
VOLATILE = tuple(key for key in COUNTERS if not key.startswith("rows_remapped"))  # those are the board's, for good
XID = "xid"
SLOWED_FOR = ("throttled_thermal", "throttled_board", "throttled_reliability")  # how long, in whatever unit
# Of which is kept since when each device has its value.
LATCHED = (*(key for key, metric in METRICS.items() if metric.kind == MetricKind.LATCHED), *SLOWED_FOR)
PAST_XIDS_AT_MOST = 16  # of one device: as many numbers as one trouble has, and no more


@dataclass(frozen=True)
class Growth:
    amount: float
    since: float  # seconds since the epoch
    goes_on: bool = True  # False: it did grow, and does not now
    hours: float = 1.0  # in which it did: more than one where it was not heard for a while; of less it is one

    @property
    def an_hour(self) -> float:
        return self.amount / self.hours


def remember(before: Frame, frame: Frame) -> list[int]:
    """Write into `frame` what it keeps of `before`, which has the same devices and was carried to them.

    The places of devices that count from nothing again: they were reset, or their driver was loaded anew.
    """
    anew = begun_anew(before, frame)
    frame.latched = {key: _since(before, frame, key) for key in LATCHED if key in frame.columns}
    frame.past_xids = _past_xids(before, frame, anew)
    now = frame.taken_at
    held = [_held(each, before, frame, frozenset(anew)) for each in before.checkpoints]
    if not held or now - held[-1].taken_at >= CHECKPOINT_S or held[-1].taken_at > now:
        held.append(_checkpoint(frame))
    frame.checkpoints = tuple(held[-CHECKPOINTS:])
    return anew


def put_in_words(frame: Frame, told: Mapping[tuple[str, str], XidTold]) -> None:
    """Keep the exporter's words for an Xid with it, for when the gauge shows another one."""
    past = dict(frame.past_xids)
    for key, each in told.items():
        known = past.get(key, {}).get(each.xid)
        if known is not None and known.words != each.words:
            past[key] = {**past[key], each.xid: PastXid(known.since, each.words)}
    frame.past_xids = past


@dataclass(frozen=True)
class KnownXids:
    """What is known from elsewhere of a board of which no frame was kept."""

    xids: Mapping[int, PastXid]  # by number
    counters: Mapping[str, float]  # what it had counted by the time of the last of these; empty: nobody wrote that down


def recall(frame: Frame, told: Mapping[tuple[str, str], KnownXids]) -> None:
    """Put back Xids that are known from elsewhere, by node and the UUID of a board.

    They are over where they would be with a frame: the board began anew since, or counts nothing and its gauge shows
    none. What its gauge shows is there.
    """
    column, past = frame.columns.get(XID), dict(frame.past_xids)
    counted = _counted(frame, told)
    for place, device in enumerate(frame.devices):
        board = device.node_name, device.uuid
        if board not in told:
            continue
        shown = column.values[place] if column is not None else NEVER
        is_anew = counts_anew(told[board].counters, counted[board]) or (shown == 0 and not _counts(frame, place))
        known = {number: xid for number, xid in told[board].xids.items() if number == shown or not is_anew}
        if not known:
            continue
        past[device.key] = dict([*past.get(device.key, {}).items(), *known.items()][:PAST_XIDS_AT_MOST])
        if shown in known:
            frame.latched[XID][place] = known[int(shown)].since
    frame.past_xids = past


def _counted(frame: Frame, boards: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Mapping[str, float]]:
    """By board the most that any part of it says of each counter."""
    found: dict[tuple[str, str], dict[str, float]] = {board: {} for board in boards}
    columns = {key: frame.columns[key].values for key in VOLATILE if key in frame.columns}
    for place, device in enumerate(frame.devices):
        its = found.get((device.node_name, device.uuid))
        if its is not None:
            said = ((key, values[place]) for key, values in columns.items())
            its |= {key: max(value, its.get(key, value)) for key, value in said if value == value}
    return found


def counts_anew(before: Mapping[str, float], now: Mapping[str, float]) -> bool:
    """As `begun_anew` has it, by the counters that are known of both moments."""
    known = [(key, before[key], now[key]) for key in before if key in now]
    goes_on = any(was > 0 and not _fell(key, was, value) for key, was, value in known)
    return not goes_on and any(_fell(key, was, value) for key, was, value in known)


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
    if not amount >= 0:  # NaN: it has no value, or had none
        return None
    goes_on, since = key not in SLOWED_FOR or still_grows(frame, key, place), _heard_at(oldest, place)
    age_s = frame.taken_at - since
    return Growth(amount, since, goes_on, age_s / HOUR_S if age_s > HOUR_S + STALE_AFTER_S else 1.0)


def _heard_at(checkpoint: Checkpoint, place: int) -> float:
    """Of when what it has of a device is: of longer ago, where that was silent by then."""
    heard = checkpoint.values.get(HEARD)
    is_silent = heard is not None and math.isfinite(heard[place]) and checkpoint.taken_at - heard[place] > STALE_AFTER_S
    return heard[place] if heard is not None and is_silent else checkpoint.taken_at


def still_grows(frame: Frame, key: str, place: int) -> bool:
    """Whether a counter of how long moved with one of its last samples. That it once did is told for an hour."""
    since = frame.latched.get(key)
    return since is not None and since[place] >= frame.taken_at - STALE_AFTER_S


def heard(frame: Frame) -> list[int]:
    """The places of devices of which something is fresh."""
    oldest = frame.taken_at - STALE_AFTER_S
    return [place for place, at in enumerate(frame.newest_by_device()) if at >= oldest]


def begun_anew(before: Frame, frame: Frame) -> list[int]:
    """The places of devices that do. One counter that fell while another went on is an exporter's error."""
    pairs = [
        (key, before.columns[key], frame.columns[key])
        for key in VOLATILE
        if key in before.columns and key in frame.columns
    ]
    fell = {
        place
        for key, was, now in pairs
        if any(map(gt, was.values, now.values))
        for place, (earlier, later) in enumerate(zip(was.values, now.values, strict=True))
        if _fell(key, earlier, later)
    }
    return [place for place in sorted(fell) if not any(_goes_on(key, was, now, place) for key, was, now in pairs)]


def begun_lately(frame: Frame) -> list[int]:
    """The places of devices that did in the last half to whole hour, as their energy tells."""
    column = frame.columns.get(ENERGY)
    then = frame.checkpoints[0].values.get(ENERGY) if frame.checkpoints else None
    if column is None or then is None:
        return []
    return [place for place, value in enumerate(then) if value == 0 and column.values[place] > 0]


def _fell(key: str, was: float, now: float) -> bool:
    """Two exporters of one GPU (an operator's beside a cloud's) are heard by turns, and one is behind the other: of
    energy, which always grows, by what was drawn in between.
    """
    return now < was and not (key == ENERGY and was - now <= APART_J and now > was / 2)


def _goes_on(key: str, was: MetricColumn, now: MetricColumn, place: int) -> bool:
    return (
        now.times[place] > was.times[place]
        and was.values[place] > 0
        and not math.isnan(now.values[place])
        and not _fell(key, was.values[place], now.values[place])
    )


def grown_by(frame: Frame, key: str, amount: float) -> list[int]:
    """The places of devices whose counter grew by as much, or more."""
    column = frame.columns.get(key)
    values = frame.checkpoints[0].values.get(key) if frame.checkpoints else None
    if column is None or values is None:
        return []
    return [place for place, grown in enumerate(map(sub, column.values, values)) if grown >= amount]


def grown_an_hour(frame: Frame, key: str, amount: float) -> list[int]:
    """The places of devices whose counter grew by as much in the last hour, or in each since it was heard before."""
    places = grown_by(frame, key, amount)
    return [place for place in places if (grown := growth(frame, key, place)) and grown.an_hour >= amount]


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


def _past_xids(before: Frame, frame: Frame, anew: Collection[int]) -> Mapping[tuple[str, str], Mapping[int, PastXid]]:
    """Until it begins anew. Of a device that counts nothing nobody would know when: until its gauge shows none."""
    column, was = frame.columns.get(XID), before.columns.get(XID)
    kept = dict(before.past_xids)
    for place in anew:
        kept.pop(frame.devices[place].key, None)
    if column is None or (not anew and was is not None and column.values.tobytes() == was.values.tobytes()):
        return kept
    since = frame.latched[XID]
    for place, value in enumerate(column.values):
        if value >= 1:
            key, number = frame.devices[place].key, int(value)
            known = kept.get(key, {})
            its = known.get(number)
            if its is None and len(known) < PAST_XIDS_AT_MOST:
                kept[key] = {**known, number: PastXid(since[place])}
            elif its is not None and since[place] == since[place] and not since[place] <= its.since:  # it came again
                kept[key] = {**known, number: PastXid(since[place], its.words)}
        elif value == 0 and kept and not _counts(frame, place):
            kept.pop(frame.devices[place].key, None)
    return kept


def _counts(frame: Frame, place: int) -> bool:
    return any(frame.columns[key].values[place] > 0 for key in VOLATILE if key in frame.columns)


def _held(checkpoint: Checkpoint, before: Frame, frame: Frame, anew: Collection[int]) -> Checkpoint:
    """A counter that began anew grew from nothing. One that is new begins as it is."""
    values = {}
    for key in COUNTERS:
        column = frame.columns.get(key)
        if column is None:
            continue
        then, last = checkpoint.values.get(key), before.columns.get(key)
        fell = frozenset(place for place in anew if last is not None and column.values[place] < last.values[place])
        if then is not None and not fell and all(map(le, then, column.values)):  # and none is new: nearly always
            values[key] = then
            continue
        values[key] = array("d", then if then is not None else unsaid(len(frame.devices)))
        for place, (now, was) in enumerate(zip(column.values, values[key], strict=True)):
            if was != was:
                values[key][place] = now
            # One that fell may have come to more than it had at the checkpoint, soon after it began the time before.
            elif place in fell or (_fell(key, was, now) and (place in anew or _stays_less(last, column, place, was))):
                values[key][place] = 0.0
    if (heard := checkpoint.values.get(HEARD)) is not None:
        values[HEARD] = heard
    return Checkpoint(checkpoint.taken_at, values)


def _stays_less(before: MetricColumn | None, now: MetricColumn, place: int, was: float) -> bool:
    """In two samples: one alone that is less, while the device counts on, is an exporter's error."""
    return before is not None and before.values[place] < was and now.times[place] > before.times[place]


def _checkpoint(frame: Frame) -> Checkpoint:
    counted = {key: frame.columns[key].values[:] for key in COUNTERS if key in frame.columns}
    return Checkpoint(frame.taken_at, {**counted, HEARD: frame.newest_by_device()})
