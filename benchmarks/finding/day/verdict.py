"""What the product says, held against what was planted."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from benchmarks.finding.day.outages import OUTAGES, Outage
from benchmarks.finding.day.plants import Seen
from benchmarks.finding.day.schedule import PlannedOutage, Plant, Schedule
from benchmarks.finding.day.scraping import Prometheus
from benchmarks.finding.day.stage import MORNING, Stage
from health.models import Finding

NOTE = "note"
TWICE = 2  # periods: what stands beside another for as long is told twice
READ = (
    "pk",
    "rule",
    "subject",
    "severity",
    "title",
    "summary",
    "evidence",
    "causes",
    "steps",
    "since",
    "opened_at",
    "times",
    "parent_id",
    "node__name",
)
Row = dict[str, Any]


@dataclass(frozen=True)
class FalseFinding:
    number: int | None  # of what was planted there, and is no trouble; None: nothing was
    says: str


@dataclass
class Verdict:
    """Of one day. `false`: findings that nothing planted explains, by their key and how often they opened."""

    schedule: Schedule
    period_s: float
    false: dict[tuple[int, int], FalseFinding] = field(default_factory=dict)
    beside: Counter[tuple[int, int]] = field(default_factory=Counter)  # by plant and finding, for how many looks
    notes: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._there: dict[str, list[Plant]] = {}  # by node, or by what of the cluster it is about
        for plant in self.schedule.plants:
            for where in {plant.place.node, plant.kind.of_cluster or plant.place.node}:
                self._there.setdefault(where, []).append(plant)

    def look(self, stage: Stage, prometheus: Prometheus, now_s: float, *, is_telemetry: bool, is_api: bool) -> None:
        """After each look of the product's."""
        rows = list(Finding.objects.filter(resolved_at=None, opened_at__isnull=False).order_by("pk").values(*READ))
        of_plants: dict[int, list[Row]] = {}
        for row in rows:
            plant = self._plant_of(row, now_s)
            if plant is not None and plant.is_trouble:
                of_plants.setdefault(plant.number, []).append(row)
            else:
                self._blame(row, plant, now_s)
        for plant in self.schedule.plants:
            if plant.is_trouble and plant.begins_s <= now_s < plant.ends_s:
                can_look = is_api and (is_telemetry or not plant.kind.needs_telemetry)
                self._judge(plant, of_plants.get(plant.number, ()), stage, prometheus, now_s, can_look=can_look)
        for outage in self.schedule.outages:
            self._judge_outage(outage, rows, now_s)

    # A plant

    def _judge(
        self, plant: Plant, rows: Iterable[Row], stage: Stage, prometheus: Prometheus, now_s: float, *, can_look: bool
    ) -> None:
        mine = list(rows)
        if plant.found_s is None and any(self._is_right(plant, row) for row in mine):
            plant.found_s = now_s
        self._judge_tellings(plant, mine, now_s)
        if plant.visible_s is None:
            node = plant.place.node
            target, pods = prometheus.targets[node], stage.pods_on(node)
            falls = [at for at in stage.falls.get(node, ()) if at > max(plant.begins_s, now_s - 1800)]
            seen = Seen(stage.node(node), target, plant.place, stage, plant.before, pods, len(falls))
            is_hidden = plant.kind.needs_telemetry and not can_look
            if plant.found_s is not None or (not is_hidden and plant.kind.is_visible(seen)):
                plant.visible_s = now_s
        else:
            plant.wait(self.period_s, can_look=can_look, is_forgotten=prometheus.is_forgotten)
        is_late = plant.waited_s > plant.kind.after_s + 2 * self.period_s
        if is_late and plant.found_s is None:
            plant.missed = True
        if is_late:
            self._judge_cause(plant, mine)

    def _judge_tellings(self, plant: Plant, rows: list[Row], now_s: float) -> None:
        """What goes on is not told anew where Redis forgot it meanwhile."""
        tellings = {(row["pk"], row["times"]) for row in rows if self._is_right(plant, row)}
        if plant.tellings and not tellings <= plant.tellings and plant.kind.is_of_gpu:
            emptied = (one.begins_s for one in self.schedule.outages if one.what is Outage.MEMORY)
            if any((plant.found_s or 0.0) <= at < now_s for at in emptied):
                plant.doubled = plant.doubled or "the same once more, since Redis was emptied"
        plant.tellings |= tellings

    def _is_right(self, plant: Plant, row: Row) -> bool:
        return row["rule"] in plant.kind.rules and row["subject"] == plant.subject

    def _judge_cause(self, plant: Plant, rows: list[Row]) -> None:
        is_note_right = len(plant.kind.rules) == 1
        alone = [
            row
            for row in rows
            if row["parent_id"] is None and (row["severity"] != NOTE or (is_note_right and self._is_right(plant, row)))
        ]
        for row in alone:
            if row["rule"] in plant.kind.leaves:
                continue
            if not self._is_right(plant, row):
                plant.wrong = plant.wrong or f"{row['rule']}: {row['title']}"
            elif row["rule"] == plant.kind.rules[-1] and plant.planting.says not in _told(row):
                plant.wrong = f"it says “{_told(row)}”, and not “{plant.planting.says}”"
        told = [row for row in alone if row["rule"] not in plant.kind.leaves]
        for row in told[1:]:
            self.beside[plant.number, row["pk"]] += 1
            if self.beside[plant.number, row["pk"]] >= TWICE:
                plant.doubled = "; ".join(f"{each['rule']} of {each['subject']}" for each in told)

    # Outages

    def _judge_outage(self, outage: PlannedOutage, rows: Iterable[Row], now_s: float) -> None:
        kind = OUTAGES[outage.what]
        if not kind.rule or not outage.begins_s <= now_s <= outage.ends_s:
            return
        if outage.found_s is None and any(row["rule"] == kind.rule for row in rows):
            outage.found_s = now_s
        # It shows with the first round that finds it: within a period.
        if outage.found_s is None and now_s - outage.begins_s > kind.after_s + 3 * self.period_s:
            outage.missed = True

    # What nothing planted explains

    def _plant_of(self, row: Row, now_s: float) -> Plant | None:
        """The last one that began there before it was first seen."""
        since_s = seconds(row["since"])
        mine = [
            plant
            for plant in self._there.get(row["node__name"] or row["subject"], ())
            if plant.begins_s - self.period_s <= since_s <= plant.ends_s + plant.kind.rests_s
            and (row["node__name"] or row["rule"] in plant.kind.rules)
        ]
        return max(mine, key=lambda plant: plant.begins_s, default=None)

    def _blame(self, row: Row, plant: Plant | None, now_s: float) -> None:
        if row["parent_id"] is not None or self._is_of_an_outage(row):
            return
        if row["severity"] == NOTE:
            self.notes.add(row["pk"])
            return
        there = f" where {plant.kind.name} was planted" if plant else ""
        told = f"{row['rule']}{there}, at {clock(now_s)}: {row['title']}"
        self.false.setdefault((row["pk"], row["times"]), FalseFinding(plant.number if plant else None, told))

    def _is_of_an_outage(self, row: Row) -> bool:
        since_s = seconds(row["since"])
        return any(
            OUTAGES[outage.what].rule == row["rule"] and outage.begins_s <= since_s <= outage.ends_s + 2 * self.period_s
            for outage in self.schedule.outages
        )


def seconds(at: datetime) -> float:
    return (at - MORNING).total_seconds()


def clock(passed_s: float) -> str:
    minutes = int(passed_s // 60)
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _told(row: Row) -> str:
    """All that a person reads of it."""
    values = [str(item["value"]) for item in row["evidence"]]
    return " ".join([row["title"], row["summary"], *values, *row["causes"], *row["steps"]])
