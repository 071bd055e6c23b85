"""The GPU-hours of a node in one hour by use and owner. Pure.

Every GPU-second has exactly one use. Pods that share a GPU share its time, so a GPU is never charged twice. An hour
without enough telemetry is not measured, never idle.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from statistics import fmean

from health.telemetry.hours import HOUR_S, IDLE_BELOW

REPORTED_FOR = 0.9  # share of an hour with samples; with less, the hour is not measured
TARGET = 0.5  # utilisation of a GPU that is well used. Ours: SM activity below 0.5 is probably poor use (DCGM)


class GpuUse(StrEnum):
    USED = "used"
    IDLE = "idle"  # allocated, and less than 5 % busy
    UNMEASURED = "unmeasured"  # allocated, without telemetry of the hour
    UNALLOCATED = "unallocated"  # free, and open to pods
    QUARANTINED = "quarantined"  # free, but unhealthy, or on a cordoned node that nothing changes
    IN_REPAIR = "in_repair"  # free, on a node that is not ready, or that an operation or a plan changes
    OUT_OF_SERVICE = "out_of_service"  # either of the two, in hours recorded before they were separate
    UNKNOWN = "unknown"  # unknown whether a pod used it


Owner = tuple[str, str]  # namespace, and `Job/train`; blank: no pod
NOBODY: Owner = ("", "")
UseHours = dict[tuple[Owner, GpuUse], float]
Rating = tuple[GpuUse, float]  # and the share of the time that a well used GPU would not have needed


@dataclass(frozen=True)
class MeasuredDevice:
    """A board or a slice in the hour, as telemetry reported it."""

    seen_s: float
    utilisation: float | None  # mean, 0 to 1; None: unknown


@dataclass(frozen=True)
class HourHolder:
    """A pod that had GPUs of the node between two seconds of the hour."""

    owner: Owner
    since_s: float
    until_s: float
    gpus: float  # physical GPUs, by its requests
    is_shared: bool = False  # other pods have parts of the GPU
    boards: Sequence[int] = ()  # indices; empty: nothing tells which
    slices: Sequence[tuple[int, str]] = ()  # index of the board, and number
    is_seen: bool = True  # False: it may have ended before

    @property
    def seconds(self) -> float:
        return self.until_s - self.since_s

    @property
    def part(self) -> float:
        """Returns the part of each of its boards that it asks for."""
        return 1.0 if self.is_shared or not self.gpus else min(1.0, self.gpus / len(self.boards))

    @property
    def unplaced(self) -> float:
        """Returns the GPUs that it has without a known board."""
        if self.boards and (self.is_shared or not self.gpus):
            return 0.0
        return max(0.0, self.gpus - self.part * len(self.boards) if self.boards else self.gpus)


@dataclass(frozen=True)
class HourOfNode:
    gpus: int  # physical
    present_s: float = HOUR_S  # since the node exists
    is_in_service: bool = True  # ready, and open to pods
    is_in_repair: bool = False  # not ready, or an operation or a plan changes it
    unhealthy: int = 0  # GPUs that are not allocatable now
    is_seen: bool = True  # whether pods of the cluster are seen
    holders: Sequence[HourHolder] = ()
    devices: Mapping[tuple[int, str], MeasuredDevice] = field(default_factory=dict)  # by index and number of the slice


@dataclass(frozen=True)
class SplitHours:
    by_use: UseHours  # uses above 0; the sum is the node's GPU time, or the pods' if that is more
    under_used: Mapping[Owner, float]  # part of the used hours that well-used GPUs would not need


def node_hours(node: HourOfNode) -> SplitHours:
    owned = node.gpus * node.present_s
    if not node.is_seen:
        return SplitHours({(NOBODY, GpuUse.UNKNOWN): owned / HOUR_S} if owned else {}, {})
    placed, under_used = _placed(node)
    unplaced = [(each, each.unplaced * each.seconds) for each in node.holders if each.unplaced and each.seconds > 0]
    room = max(0.0, owned - sum(placed.values()))
    wanted = sum(seconds for _, seconds in unplaced)
    scale = min(1.0, room / wanted) if wanted else 1.0
    everywhere, spare = _use_everywhere(node)
    for each, seconds in unplaced:
        key = (each.owner, everywhere) if each.is_seen else (NOBODY, GpuUse.UNKNOWN)
        placed[key] += scale * seconds
        under_used[each.owner] += spare * scale * seconds if each.is_seen else 0.0
    free = room - scale * wanted
    out = free if not node.is_in_service else min(free, node.unhealthy * node.present_s)
    placed[NOBODY, GpuUse.IN_REPAIR if node.is_in_repair else GpuUse.QUARANTINED] += out
    placed[NOBODY, GpuUse.UNALLOCATED] += free - out
    return SplitHours(
        {key: seconds / HOUR_S for key, seconds in placed.items() if seconds > 0},
        {owner: seconds / HOUR_S for owner, seconds in under_used.items() if seconds > 0},
    )


def _placed(node: HourOfNode) -> tuple[dict[tuple[Owner, GpuUse], float], dict[Owner, float]]:
    """Returns the seconds of GPUs with known holders, and of these the seconds that were not needed."""
    found: dict[tuple[Owner, GpuUse], float] = defaultdict(float)
    under_used: dict[Owner, float] = defaultdict(float)
    by_board: dict[int, list[HourHolder]] = defaultdict(list)
    for holder in node.holders:
        for board in holder.boards:
            if holder.is_seen and holder.seconds > 0:
                by_board[board].append(holder)
    for board, holders in by_board.items():
        shares, held_s = _shares(holders)
        for holder, seconds in zip(holders, shares, strict=True):
            use, spare = _use_of(node, holder, board, held_s)
            found[holder.owner, use] += seconds
            under_used[holder.owner] += spare * seconds
    return found, under_used


def _shares(holders: Sequence[HourHolder]) -> tuple[list[float], float]:
    """Returns the seconds of one board for each holder, and how long anybody had it."""
    if len(holders) == 1:
        return [holders[0].part * holders[0].seconds], holders[0].seconds
    shares, held_s = [0.0] * len(holders), 0.0
    moments = sorted({at for each in holders for at in (each.since_s, each.until_s)})
    for begin, end in pairwise(moments):
        there = [place for place, each in enumerate(holders) if each.since_s <= begin and end <= each.until_s]
        wanted = sum(holders[place].part for place in there)
        held_s += end - begin if there else 0.0
        for place in there:
            shares[place] += (end - begin) * holders[place].part / max(1.0, wanted)
    return shares, held_s


def _use_of(node: HourOfNode, holder: HourHolder, board: int, held_s: float) -> Rating:
    slices = [number for index, number in holder.slices if index == board]
    if slices:
        return _combined_use(_use_of_device(node.devices.get((board, number)), holder.seconds) for number in slices)
    if whole := node.devices.get((board, "")):
        return _use_of_device(whole, held_s)
    parts = [device for (index, number), device in node.devices.items() if index == board and number]
    return _common_use([_use_of_device(part, held_s) for part in parts])


def _use_everywhere(node: HourOfNode) -> Rating:
    """Returns the use of every GPU of the node, if it is the same for all. Nothing tells which of them a pod had."""
    boards = {index for index, _ in node.devices}
    every = [_use_of_device(device, HOUR_S) for device in node.devices.values()]
    return _common_use(every) if len(boards) >= node.gpus else (GpuUse.UNMEASURED, 0.0)


def _common_use(ratings: Sequence[Rating]) -> Rating:
    """Returns the use of devices of which nothing tells who had them: only if all had the same."""
    uses = {use for use, _ in ratings}
    return (uses.pop(), fmean(spare for _, spare in ratings)) if len(uses) == 1 else (GpuUse.UNMEASURED, 0.0)


def _combined_use(ratings: Iterable[Rating]) -> Rating:
    """Returns the use of all slices that a pod had on a board: an idle one beside a busy one was used in vain."""
    found = list(ratings)
    uses = {use for use, _ in found}
    if GpuUse.UNMEASURED in uses:
        return GpuUse.UNMEASURED, 0.0
    if GpuUse.USED not in uses:
        return GpuUse.IDLE, 0.0
    return GpuUse.USED, fmean(spare if use is GpuUse.USED else 1.0 for use, spare in found)


def _use_of_device(device: MeasuredDevice | None, held_s: float) -> Rating:
    """Returns the use of a device that pods had for these seconds of the hour."""
    if device is None or device.utilisation is None or device.seen_s < REPORTED_FOR * HOUR_S:
        return GpuUse.UNMEASURED, 0.0
    busy = device.utilisation * device.seen_s / max(held_s, 1.0)
    return (GpuUse.USED, 1.0 - min(1.0, busy / TARGET)) if busy >= IDLE_BELOW else (GpuUse.IDLE, 0.0)
