"""MIG shapes against the requests of past pods: the layout that would have served most of them. Pure.

A layout gives each GPU one profile, or leaves it whole: NVIDIA's default configurations of the MIG manager do the
same. Node boundaries are not compared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpu.resources.mig_slices import slices_of_a_board

WHOLE = ""  # profile of a GPU without MIG
USUAL = 0.95  # of the time
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class ProfileRequest:
    """A pod's slices of one profile, or whole GPUs, and the time for which it had them."""

    profile: str
    number: int
    since: datetime
    until: datetime


@dataclass(frozen=True)
class ProfileDemand:
    profile: str  # blank: whole GPUs
    per_gpu: int  # units of one GPU
    offered: int  # units now
    peak: int  # most units at one time
    usual: int  # units that were enough for 95 % of the time
    gpus: int  # of the layout that fits the demand best
    hours: Sequence[float] = ()  # for which at least 1, 2, 3, … units were requested at the same time

    @property
    def gpus_now(self) -> int:
        return -(-self.offered // self.per_gpu)


@dataclass(frozen=True)
class MigDemand:
    """The demand on the GPUs of one product."""

    product: str
    gpus: int  # that are whole or cut now
    profiles: Sequence[ProfileDemand]
    unknown: Sequence[str]  # profiles with an unknown number of slices per GPU; they are not counted
    gpu_hours: float  # requested
    served: float  # of these, GPU-hours that the best layout would have served
    served_now: float  # of these, GPU-hours that the present layout would have served

    @property
    def spare(self) -> int:
        """Returns the GPUs that the best layout does not need."""
        return self.gpus - sum(profile.gpus for profile in self.profiles)


def mig_demand(
    product: str,
    gpus: int,
    offered: Mapping[str, int],
    requests: Iterable[ProfileRequest],
    *,
    begin: datetime,
    end: datetime,
) -> MigDemand:
    by_profile: dict[str, list[ProfileRequest]] = defaultdict(list, {profile: [] for profile in offered})
    for request in requests:
        by_profile[request.profile].append(request)
    sizes = {name: 1 if name == WHOLE else slices_of_a_board(name, product) for name in sorted(by_profile)}
    known = [profile for profile, size in sizes.items() if size]
    curves = {name: _hours_at_least(by_profile[name], begin=begin, end=end) for name in known}
    boards = {name: _hours_by_gpu(curves[name], sizes[name]) for name in known}
    chosen = _best_layout(boards, gpus)
    total = (end - begin) / HOUR
    return MigDemand(
        product,
        gpus,
        [
            ProfileDemand(
                name, sizes[name], offered.get(name, 0), len(curves[name]),
                sum(hours > (1 - USUAL) * total for hours in curves[name]), chosen[name], curves[name],
            )
            for name in known
        ],
        [profile for profile, size in sizes.items() if not size],
        sum(map(sum, boards.values())),
        sum(sum(boards[name][: chosen[name]]) for name in known),
        sum(sum(curves[name][: offered.get(name, 0)]) / sizes[name] for name in known),
    )  # fmt: skip


def _hours_at_least(requests: Iterable[ProfileRequest], *, begin: datetime, end: datetime) -> list[float]:
    """Returns for how many hours at least 1, 2, 3, … units were requested at the same time."""
    changes: Counter[datetime] = Counter()
    for request in requests:
        since, until = max(request.since, begin), min(request.until, end)
        if since < until:
            changes[since] += request.number
            changes[until] -= request.number
    hours: dict[int, float] = defaultdict(float)
    level, before = 0, begin
    for at in sorted(changes):
        hours[level] += (at - before) / HOUR
        level, before = level + changes[at], at
    found, reached = list[float](), 0.0
    for units in range(max(hours, default=0), 0, -1):
        reached += hours[units]
        found.append(reached)
    return found[::-1]


def _hours_by_gpu(curve: Sequence[float], size: int) -> list[float]:
    """Returns the GPU-hours that the first, second, third, … GPU of a profile serves. They never rise."""
    return [sum(curve[first : first + size]) / size for first in range(0, len(curve), size)]


def _best_layout(boards: Mapping[str, Sequence[float]], gpus: int) -> Counter[str]:
    """Returns the number of GPUs by profile. Each GPU goes where it serves the most of what is left."""
    offers = ((hours, profile) for profile, gpu_hours in boards.items() for hours in gpu_hours)
    return Counter(profile for _, profile in sorted(offers, key=lambda offer: (-offer[0], offer[1]))[:gpus])
