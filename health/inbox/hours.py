"""Hourly activity of a node or one GPU, with the findings open in each hour. Pages and REST show it as strips."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Q
from django.db.models.functions import Coalesce

from fleet.history.lines import NodeKept
from fleet.models import Gpu, Node
from health.models import Finding, GpuHour
from health.rules.base import RANKS
from wording.durations import spell
from wording.numbers import count

HOUR = timedelta(hours=1)
HOURS = 72  # of a strip
LEAST_H = 0.05  # GPU-hours that are worth a word
MOST = 24 * 31


@dataclass(frozen=True)
class NodeHour:
    hour: datetime  # start of the hour
    devices: Sequence[GpuHour]  # boards and slices with telemetry
    findings: Sequence[Finding]  # that were open at any time of it, the worst first
    is_of_one: bool = False  # True: the hour of one GPU

    @property
    def end(self) -> datetime:
        return self.hour + HOUR

    @cached_property
    def boards(self) -> Mapping[str, Sequence[GpuHour]]:
        """Returns the hours of each board by its UUID: of the board, of its slices, or both."""
        found: dict[str, list[GpuHour]] = defaultdict(list)
        for each in self.devices:
            found[each.uuid].append(each)
        return found

    @property
    def seen_h(self) -> float:
        """Returns the GPU-hours with telemetry. A partitioned GPU counts once."""
        return sum(max(each.seen_s for each in of) for of in self.boards.values()) / HOUR.total_seconds()

    @property
    def busy_h(self) -> float | None:
        """Returns the GPU-hours under load, of any slice; None if no GPU reports its utilisation."""
        known = [busy for busy, _ in self._loads]
        return sum(known) / HOUR.total_seconds() if known else None

    @property
    def unknown_h(self) -> float:
        """Returns the GPU-hours with telemetry but without utilisation."""
        return self.seen_h - sum(seen for _, seen in self._loads) / HOUR.total_seconds()

    @property
    def load(self) -> float | None:
        """Returns the share of observed time under load, of the GPUs whose utilisation is known."""
        observed_s = sum(seen for _, seen in self._loads)
        return sum(busy for busy, _ in self._loads) / observed_s if observed_s else None

    @property
    def _loads(self) -> list[tuple[float, float]]:
        """Returns seconds under load and seconds observed of each board with known utilisation."""
        found = []
        for of in self.boards.values():
            known = [each.busy_s for each in of if each.busy_s is not None]
            if known:
                found.append((max(known), max(each.seen_s for each in of)))
        return found

    @property
    def allocated_h(self) -> float | None:
        """Returns the GPU-hours allocated to pods; None if the allocation of any GPU is unknown.

        A partitioned GPU counts once. Where only its slices are exported, the longest allocated slice is a lower bound.
        """
        longest = [
            max((each.allocated_s for each in of if each.allocated_s is not None), default=None)
            for of in self.boards.values()
        ]
        told = [seconds for seconds in longest if seconds is not None]
        return sum(told) / HOUR.total_seconds() if told and len(told) == len(longest) else None

    @property
    def hottest(self) -> float | None:
        return max((each.temperature_max for each in self.devices if each.temperature_max is not None), default=None)

    @property
    def xids(self) -> int | None:
        """Returns a lower bound of the number of Xids; None if nothing reported them.

        An exporter repeats a board's Xids on each of its slices.
        """
        known = [[each.xids for each in of if each.xids is not None] for of in self.boards.values()]
        return sum(max(of) for of in known if of) if any(known) else None

    @property
    def sentence(self) -> str:
        if self.is_of_one:
            return self._sentence_of_one
        if not self.devices:
            return "No GPU was measured."
        busy = "their utilisation is unknown" if self.busy_h is None else f"{self.busy_h:.1f} of them under load"
        if self.busy_h is not None and self.unknown_h >= LEAST_H:
            busy += f" and {self.unknown_h:.1f} with unknown utilisation"
        had = "" if self.allocated_h is None else f", {self.allocated_h:.1f} allocated to pods"
        said = [f"{self.seen_h:.1f} GPU-hours measured, {busy}{had}."]
        warm = (
            "Their temperature is unknown." if self.hottest is None else f"The hottest GPU had {self.hottest:.0f} °C."
        )
        return " ".join([*said, warm, *self._xids_in_words("they")])

    @property
    def _sentence_of_one(self) -> str:
        if not self.devices:
            return "It was not measured."
        busy = "its utilisation is unknown" if self.load is None else f"under load {self.load:.0%} of that time"
        said = [f"Measured for {spell(self.seen_h * HOUR)}, {busy}."]
        if self.allocated_h is not None:
            said.append(
                f"Allocated for {spell(self.allocated_h * HOUR)}." if self.allocated_h else "Allocated to no pod."
            )
        warm = "Its temperature is unknown." if self.hottest is None else f"Highest temperature: {self.hottest:.0f} °C."
        return " ".join([*said, warm, *self._xids_in_words("it")])

    def _xids_in_words(self, who: str) -> list[str]:
        """Returns the Xids as text; empty if there were none."""
        if self.xids is None:
            return [f"The Xids that {who} had are unknown."]
        return [f"At least {count(self.xids, 'Xid')}."] if self.xids else []

    @property
    def severity(self) -> str:
        """Returns the severity of the worst finding; empty if none was open."""
        return self.findings[0].severity if self.findings else ""


def hours_of(node: Node, *, gpu: Gpu | None = None, hours: int = HOURS, now: datetime) -> list[NodeHour]:
    """Returns the completed hours, oldest first, with two queries. It returns none from before the node existed.

    `gpu` restricts them to one GPU of the node.
    """
    end = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    created = node.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    begin = max(end - hours * HOUR, created)
    devices: dict[datetime, list[GpuHour]] = defaultdict(list)
    rows = GpuHour.objects.filter(cluster=node.cluster_id, node_name=node.name, hour__gte=begin, hour__lt=end)
    told = Finding.objects.notified().filter(node=node)
    if gpu is not None:
        rows, told = rows.filter(**device_of(gpu)), told.of_gpu(gpu)
    for row in rows.order_by("hour", "index", "gi_id", "uuid"):
        devices[row.hour].append(row)
    still = Q(resolved_at__isnull=True) | Q(resolved_at__gt=begin)
    began = Coalesce("first_opened_at", "opened_at")
    found = sorted(told.alias(began=began).filter(still, began__lt=end), key=lambda each: RANKS[each.severity])
    return [
        NodeHour(hour, devices.get(hour, ()), _open_in(hour, found), is_of_one=gpu is not None)
        for hour in (begin + number * HOUR for number in range(int((end - begin) / HOUR)))
    ]


def hour_at(node: NodeKept, at: datetime) -> NodeHour:
    """Returns the hour that contains this moment, without its findings, with one query. Departed nodes are included."""
    hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    rows = GpuHour.objects.filter(cluster=node.cluster_id, node_name=node.name, hour=hour)
    return NodeHour(hour, list(rows.order_by("index", "gi_id", "uuid")), ())


def device_of(gpu: Gpu) -> dict[str, Any]:
    """Returns a filter for hours of one GPU: by its UUID if known, else by its index."""
    return {"uuid": gpu.uuid} if gpu.uuid else {"index": gpu.index}


def _open_in(hour: datetime, findings: Sequence[Finding]) -> list[Finding]:
    return [
        finding
        for finding in findings
        if (finding.first_opened_at or finding.opened_at or finding.since) < hour + HOUR
        and (finding.resolved_at is None or finding.resolved_at > hour)
    ]
