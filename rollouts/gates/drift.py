"""No measure of the GPUs of a changed node is slowly getting worse, also below the limits of rules.

Each node is compared with its own hours before the release, and changed nodes are compared with unchanged nodes that
have the same GPUs. A node drifts if some hours in a row are worse than every hour before, and by more than the stated
effect. An hour counts only if the GPUs worked. Temperature, power and tensor activity need a similar load.

A drift is no proof. The first drift of each node is a trial of the sequential test that gates share, with α divided by
the number of measures. With fewer than four nodes on a side the gate waits for a person.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import ClassVar, NamedTuple

from rollouts.gates.base import (
    FEWEST_PEERS,
    UNPROVED,
    Evidence,
    Gate,
    GateResult,
    HoursEvidence,
    Items,
    MeasuredHour,
    TargetEvidence,
    When,
)
from rollouts.gates.first_events import FirstEvents, Firsts
from rollouts.gates.results import OVERRIDE, fail, no_target, passed, subject, to_come, unknown_before, wait
from wording.lists import names
from wording.numbers import count
from wording.reports import EvidenceItem, first_items

HOUR = timedelta(hours=1)
FEWEST_PAST = 3  # hours before the release
BUSY_FROM, SIMILAR_LOAD = 0.1, 0.1  # utilisation, 0 to 1
READ_PLOTS = ("Compare the plots of the node before and after the change.", "Then roll back, or exclude the node.")
LONGER = ("Wait for more busy hours, or let tenants work on these nodes.", *OVERRIDE)
NO_HOURS = ("Wait for whole hours, or add a telemetry source on the page of the cluster.", *OVERRIDE)


class Measure(NamedTuple):
    key: str
    title: str
    unit: str
    least: float  # the smallest effect, in its unit
    is_higher_worse: bool = True
    needs_load: bool = False  # only hours with a similar load are compared


MEASURES = (
    Measure("ecc_corrected", "Corrected ECC errors", "per GPU-hour", 1),
    Measure("nvlink_errors", "NVLink errors", "per GPU-hour", 1),
    Measure("throttled", "Throttled", "of the time", 0.02),
    Measure("temperature", "Temperature", "°C", 3, needs_load=True),
    Measure("power_watts", "Power", "W", 10, is_higher_worse=False, needs_load=True),
    Measure("tensor", "Tensor cores active", "of the time", 0.02, is_higher_worse=False, needs_load=True),
)


class Samples(NamedTuple):
    """The hours of a node that count for a measure, before and after its change."""

    past: list[MeasuredHour]
    after: list[MeasuredHour]


class Course(NamedTuple):
    """The course of a measure on one node with enough hours."""

    before: float  # median
    now: float  # the newest hour
    drifts_since: datetime | None  # None: it does not drift


Courses = Mapping[str, Course]  # by name of a node with enough hours


@dataclass(frozen=True)
class Drift(Gate):
    worse_percent: int = 10  # the smallest effect, of the node's own past
    hours: int = 2  # in a row

    key: ClassVar[str] = "drift"
    title: ClassVar[str] = "Slow drift"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (1 <= self.worse_percent <= 100 and 1 <= self.hours <= 24):
            raise ValueError("worse_percent is from 1 to 100, and hours is from 1 to 24.")

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        if not evidence.counted:
            return no_target()
        hours = evidence.hours or HoursEvidence({})
        changed = [target for target in evidence.changed if target.baseline and target.name in hours.changed]
        here = {measure: self._changed_node_courses(measure, changed, hours) for measure in MEASURES}
        drifting = {measure: found for measure, its in here.items() if (found := _drifting(its))}
        compared = {
            measure: self._compare(measure, drifting[measure], here[measure], changed, hours) for measure in drifting
        }
        items = (*self._items(here, evidence, hours), *(item for one in compared.values() for item in one.items))
        if proved := {measure: drifting[measure] for measure, one in compared.items() if _is_proved(one)}:
            return self._fails(proved, here, items)
        if doubtful := {measure: its for measure, its in drifting.items() if not _is_as_often(compared[measure])}:
            return self._unproved(doubtful, here, items)
        if not evidence.changed:
            return to_come(evidence, items)
        if unknown := tuple(target.name for target in evidence.changed if not target.baseline):
            return unknown_before(unknown, "The time", items)
        judged = {name for courses in here.values() for name in courses}
        known = judged | hours.left_out
        if few := tuple(target.name for target in evidence.changed if target.name not in known):
            return self._too_few(few, hours, items)
        if evidence.not_changed:
            return to_come(evidence, items)
        return self._passes(len(judged), len(evidence.changed), items)

    def _passes(self, judged: int, every: int, items: Items) -> GateResult:
        some = f"{judged} of " if judged < every else ""
        title = f"No drift of {self.worse_percent} % on {some}{count(every, 'changed node')}"
        first = f"The first {judged} nodes of the stage were compared with their own hours before the change."
        each = "Each node was compared with its own hours before the change."
        return passed(title, first if some else each, evidence=items)

    def _changed_node_courses(
        self, measure: Measure, changed: Iterable[TargetEvidence], hours: HoursEvidence
    ) -> dict[str, Course]:
        found = {
            target.name: self.course(measure, hours.changed[target.name], target.baseline.at, target.state_since)
            for target in changed
            if target.baseline
        }
        return {name: course for name, course in found.items() if course}

    def _compare(
        self,
        measure: Measure,
        drifting: Firsts,
        here: Courses,
        changed: Sequence[TargetEvidence],
        hours: HoursEvidence,
    ) -> FirstEvents:
        """Returns the comparison with unchanged nodes, whose change is the first one of the stage."""
        released_at = min(target.baseline.at for target in changed if target.baseline)
        changed_at = min(target.state_since for target in changed)
        courses = {name: self.course(measure, its, released_at, changed_at) for name, its in hours.peers.items()}
        known = {name: course for name, course in courses.items() if course}
        return FirstEvents(measure.title, drifting, len(here), _drifting(known), len(known), tests=len(MEASURES))

    def course(
        self, measure: Measure, hours: Sequence[MeasuredHour], released_at: datetime, changed_at: datetime
    ) -> Course | None:
        """Returns the course of a measure; None if too few hours can be compared."""
        past, after = samples_of(measure, hours, released_at, changed_at)
        if len(past) < FEWEST_PAST or len(after) < self.hours:
            return None
        sign, limit = 1 if measure.is_higher_worse else -1, self.limit_of(measure, past)
        is_worse = [sign * (each.values[measure.key] - limit) > 0 for each in after]
        ends = range(self.hours, len(after) + 1)
        since = next((after[end - 1].begins_at + HOUR for end in ends if all(is_worse[end - self.hours : end])), None)
        before = median(each.values[measure.key] for each in past)
        return Course(before, after[-1].values[measure.key], since)

    def limit_of(self, measure: Measure, past: Sequence[MeasuredHour]) -> float:
        """Returns the value that an hour must exceed, or fall below, to be worse than the past."""
        sign = 1 if measure.is_higher_worse else -1
        before = median(each.values[measure.key] for each in past)
        worst = max(sign * each.values[measure.key] for each in past)
        return sign * max(worst, sign * before + max(measure.least, abs(before) * self.worse_percent / 100))

    @property
    def longest_wait(self) -> timedelta:
        """Returns how long after the change a busy node has its hours at the latest: only whole hours count."""
        return (self.hours + 1) * HOUR

    def _items(self, here: Mapping[Measure, Courses], evidence: Evidence, hours: HoursEvidence) -> Items:
        known = [measure.title for measure, its in here.items() if its]
        unknown = [measure.title for measure, its in here.items() if not its]
        return (
            EvidenceItem("Changed nodes", len(evidence.changed)),
            EvidenceItem("Nodes compared with their past (n)", len({name for its in here.values() for name in its})),
            EvidenceItem("Unchanged nodes", len(hours.peers)),
            *([EvidenceItem("They have", hours.alike)] if hours.peers and hours.alike else []),
            EvidenceItem("Smallest effect", self.worse_percent, "%"),
            *([EvidenceItem("Measured", names(known, most=len(MEASURES)))] if known else []),
            *([EvidenceItem("Not measured", names(unknown, most=len(MEASURES)))] if unknown else []),
        )

    def _fails(self, drifting: Mapping[Measure, Firsts], here: Mapping[Measure, Courses], items: Items) -> GateResult:
        nodes, measures = _nodes_and_titles(drifting)
        title = f"{measures[0]} drifts on {subject(nodes)}"
        summary = "Unchanged nodes drift less. Chance is excluded."
        shown = (*items, *_changes(drifting, here))
        return fail(title, summary, cause=", ".join(measures), nodes=nodes, evidence=shown, steps=READ_PLOTS)

    def _unproved(
        self, drifting: Mapping[Measure, Firsts], here: Mapping[Measure, Courses], items: Items
    ) -> GateResult:
        nodes, measures = _nodes_and_titles(drifting)
        title = f"{measures[0]} drifts on {subject(nodes)}; too few nodes to prove"
        summary = f"It may be chance. A comparison needs {FEWEST_PEERS} changed and {FEWEST_PEERS} unchanged nodes."
        shown = (*items, *_changes(drifting, here))
        return wait(title, summary, cause=UNPROVED, nodes=nodes, evidence=shown, steps=(*READ_PLOTS, *OVERRIDE))

    def _too_few(self, nodes: tuple[str, ...], hours: HoursEvidence, items: Items) -> GateResult:
        if not any(its for its in hours.changed.values()):
            title = "The changed nodes have no hours of GPU telemetry"
            return wait(title, "An hour counts once it is over.", cause="no-hours", evidence=items, steps=NO_HOURS)
        title = f"{subject(nodes)}: too few hours to prove anything"
        summary = f"A node needs {FEWEST_PAST} busy hours before and {self.hours} after, at a similar load."
        return wait(title, summary, cause="few-hours", nodes=nodes, evidence=items, steps=LONGER)


def samples_of(measure: Measure, hours: Sequence[MeasuredHour], released_at: datetime, changed_at: datetime) -> Samples:
    """Returns the busy hours before the release and after the change; where it matters, only those with a like load."""
    busy = [each for each in hours if measure.key in each.values and _is_busy(each, measure)]
    past = [each for each in busy if each.begins_at + HOUR <= released_at]
    after = [each for each in busy if each.begins_at >= changed_at]
    if measure.needs_load and past:
        load = median(each.load or 0.0 for each in past)
        past, after = ([each for each in its if _has_load(each, load)] for its in (past, after))
    return Samples(past, after)


def _is_busy(hour: MeasuredHour, measure: Measure) -> bool:
    """Returns whether the GPUs worked. An idle node proves nothing; without a utilisation only counters count."""
    return not measure.needs_load if hour.load is None else hour.load >= BUSY_FROM


def _has_load(hour: MeasuredHour, load: float) -> bool:
    return hour.load is not None and abs(hour.load - load) <= SIMILAR_LOAD


def _drifting(courses: Courses) -> Firsts:
    return {name: course.drifts_since for name, course in courses.items() if course.drifts_since}


def _is_comparable(compared: FirstEvents) -> bool:
    return min(compared.nodes, compared.peers) >= FEWEST_PEERS


def _is_proved(compared: FirstEvents) -> bool:
    return _is_comparable(compared) and compared.is_proved


def _is_as_often(compared: FirstEvents) -> bool:
    return _is_comparable(compared) and compared.is_as_often


def _nodes_and_titles(drifting: Mapping[Measure, Firsts]) -> tuple[tuple[str, ...], list[str]]:
    nodes = tuple(dict.fromkeys(name for its in drifting.values() for name in its))
    return nodes, [measure.title for measure in drifting]


def _changes(drifting: Mapping[Measure, Firsts], here: Mapping[Measure, Courses]) -> Items:
    return first_items(
        EvidenceItem(
            f"{name}: {measure.title}",
            f"{here[measure][name].now:.3g} {measure.unit}, {here[measure][name].before:.3g} before",
        )
        for measure, its in drifting.items()
        for name in its
    )
