"""What is planted when and where, all of it from the seed: so one of it can be planted alone."""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.finding.day.kinds import BRIEF, FOUND, HARMLESS
from benchmarks.finding.day.outages import OUTAGES, Outage
from benchmarks.finding.day.plants import MINUTE, Kind, Place, Planting

QUIET_S = 4 * MINUTE  # at the beginning: everybody is looked at once before anything happens
A_DAY = 240  # plants of trouble in a day at a thousand nodes
CALMS_S = 10 * MINUTE  # after what is no trouble
LONG_S = 12 * 3600.0  # there is time enough in it for what has to be alone
UPGRADES, ALONE = "upgrades", "alone"  # beside nodes: when drivers are changed, and when only one of them may be
LEAST = 2  # of each kind where there is room


@dataclass
class Plant:
    """One piece of trouble, or of what only looks like it; and what became of it."""

    number: int
    kind: Kind
    place: Place
    planting: Planting
    begins_s: float
    ends_s: float
    before: dict[str, float] = field(default_factory=dict)
    visible_s: float | None = None
    waited_s: float = 0.0  # since it was visible, while somebody could look
    unseen_s: float = 0.0  # since somebody could last
    found_s: float | None = None
    wrong: str = ""  # what was said of it instead
    tellings: set[tuple[int, int]] = field(default_factory=set)  # by finding, and how often that opened
    doubled: str = ""  # what else was told of it at the same time
    missed: bool = False

    def wait(self, period_s: float, *, can_look: bool, is_forgotten: bool) -> None:
        """`is_forgotten`: what was seen so far, an hour's sums as well (docs/architecture.md: Redis)."""
        self.unseen_s = 0.0 if can_look else self.unseen_s + period_s
        self.waited_s += period_s if can_look else 0.0
        if self.unseen_s > self.kind.lacks_s or (is_forgotten and math.isfinite(self.kind.lacks_s)):
            self.waited_s = 0.0

    @property
    def is_judged(self) -> bool:
        """Else it did not show, or its end came before its rule had waited while somebody could look."""
        return self.found_s is not None or self.missed

    @property
    def is_trouble(self) -> bool:
        return bool(self.kind.rules)

    @property
    def subject(self) -> str:
        if self.kind.of_cluster:
            return self.kind.of_cluster
        return f"GPU {self.place.gpu} of {self.place.node}" if self.kind.is_of_gpu else f"node {self.place.node}"


@dataclass
class PlannedOutage:
    number: int
    what: Outage
    begins_s: float
    ends_s: float
    amount: float = 0.0  # seconds that a clock is off
    found_s: float | None = None
    missed: bool = False


@dataclass(frozen=True)
class Schedule:
    plants: Sequence[Plant]
    outages: Sequence[PlannedOutage]

    def only(self, number: int) -> "Schedule":
        """The one of this number, and nothing else."""
        plants = [plant for plant in self.plants if plant.number == number]
        return Schedule(plants, [outage for outage in self.outages if outage.number == number])


def schedule(draw: random.Random, places: Mapping[str, Place], hours: float, *, period_s: float) -> Schedule:
    """`places`: each node with what is there; a fault picks its GPU."""
    end_s = hours * 3600
    number = max(round(A_DAY * len(places) / 1000 * hours / 24), LEAST * len(FOUND))
    pairs = _each(draw, FOUND, number), _each(draw, HARMLESS, number)
    wanted = _in_order([kind for pair in zip(*pairs, strict=False) for kind in pair], end_s)
    free: dict[str, list[tuple[float, float]]] = {node: [] for node in places}
    upgraded: set[str] = set()
    plants: list[Plant] = []
    for kind in wanted:
        there = {node: at for node, at in places.items() if not (kind.is_upgrade and node in upgraded)}
        plant = _placed(draw, kind, len(plants), there, free, end_s, period_s)
        if plant is not None:
            plants.append(plant)
            upgraded |= {plant.place.node} if kind.is_upgrade else set()
    plants.sort(key=lambda plant: plant.begins_s)
    return Schedule(plants, _outages(draw, 100_000, end_s))


def _each(draw: random.Random, kinds: Sequence[Kind], number: int) -> Iterator[Kind]:
    """All of them in turn, shuffled."""
    for _ in range(-(-number // len(kinds))):
        yield from draw.sample(kinds, len(kinds))


def _in_order(wanted: Sequence[Kind], end_s: float) -> list[Kind]:
    """What has to be alone gets its time first in a long day, a few times; in a short one what time is left."""
    alone = [kind for kind in wanted if kind.is_alone]
    rest = [kind for kind in wanted if not kind.is_alone]
    return [*alone[:LEAST], *rest] if end_s >= LONG_S else [*rest, *alone]


def _placed(
    draw: random.Random,
    kind: Kind,
    number: int,
    places: Mapping[str, Place],
    free: dict[str, list[tuple[float, float]]],
    end_s: float,
    period_s: float,
) -> Plant | None:
    """None: there is no room for it."""
    lasts_s = BRIEF.get(kind.name) or (
        kind.visible_within_s + kind.after_s + 4 * period_s + draw.uniform(2 * MINUTE, 12 * MINUTE)
        if kind.rules
        else draw.uniform(15 * MINUTE, 40 * MINUTE)
    )
    if kind.after_s > end_s - QUIET_S:
        return None  # the day is over before anybody could be told
    lasts_s = min(lasts_s, end_s - QUIET_S - period_s)
    for node in draw.sample(list(places), len(places)):
        begins_s = draw.uniform(QUIET_S, end_s - period_s - lasts_s)
        taken = [*free[node], *free.get(kind.of_cluster, ())]
        if kind.is_upgrade:
            taken += free.get(UPGRADES if kind.is_alone else ALONE, ())
        whole = begins_s - period_s, begins_s + lasts_s + (kind.rests_s if kind.rules else CALMS_S)
        if not kind.fits(places[node]) or any(whole[0] < end and begin < whole[1] for begin, end in taken):
            continue
        lanes = node, kind.of_cluster, UPGRADES if kind.is_upgrade else "", ALONE if kind.is_alone else ""
        for lane in filter(None, lanes):
            free.setdefault(lane, []).append(whole)
        at = places[node]
        place = replace(at, gpu=draw.randrange(at.gpus))
        return Plant(number, kind, place, kind.make(draw, place), begins_s, begins_s + lasts_s)
    return None


def _outages(draw: random.Random, first: int, end_s: float) -> list[PlannedOutage]:
    """Each kind four times a day; in a few hours those for which there is room. They are apart by twenty minutes."""
    found: list[PlannedOutage] = []
    wanted = [what for _ in range(max(1, round(4 * end_s / 86400))) for what in Outage]
    for what in draw.sample(wanted, len(wanted)):
        kind = OUTAGES[what]
        lasts_s = draw.uniform(kind.shortest_s, kind.longest_s)
        if end_s < 20 * lasts_s and what is not Outage.CLOCK:
            continue
        begins_s = draw.uniform(QUIET_S, end_s - lasts_s - QUIET_S)
        if any(begins_s - 1200 < one.ends_s and one.begins_s < begins_s + lasts_s + 1200 for one in found):
            continue
        amount = draw.uniform(-28, 28) if what is Outage.CLOCK else 0.0
        found.append(PlannedOutage(first + len(found), what, begins_s, begins_s + lasts_s, amount))
    return found
