"""The filter, order and columns of the GPU table, from an address or a REST query. Pure but for the query."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import QueryDict

from health.gpus.columns import COLUMNS, ORDERS, READ, USUAL, WORST_FIRST, GpuColumn
from health.rules.base import Severity
from health.sources.readings import MetricReading, ReadingState
from health.telemetry.metrics import METRICS, SLOWING_BITS

LONGEST = 253  # characters of one value
NONE = "none"  # of severities: no finding
SEVERITIES = (*(severity.value for severity in Severity), NONE)
PARTS: Mapping[str, str] = {
    "q": "the text",
    "cluster": "the cluster",
    "pool": "the pool",
    "product": "the product",
    "namespace": "the namespace",
    "state": "the state of the node",
    "severity": "the severity",
    "faults": "“faults only”",
    "metric": "the value of its exporter",
}
ZERO = "zero"
READINGS: Mapping[str, str] = {  # state of the filtered metric on a GPU
    ZERO: "is 0",
    ReadingState.FRESH: "is of now",
    ReadingState.STALE: "is stale",
    ReadingState.SOURCE_SILENT: "its source is silent",
    ReadingState.NOT_EXPORTED: "is not exported",
    ReadingState.NEVER: "was never seen",
    ReadingState.NO_SOURCE: "has no source",
    ReadingState.NOT_APPLICABLE: "does not apply",
}
OF_A_METRIC = ("reading", "at_least")  # that say nothing without one
NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")


@dataclass(frozen=True)
class GpuFilter:
    q: str = ""  # a part of a node's name or of a UUID
    cluster: str = ""
    pool: str = ""  # cluster/pool
    product: str = ""
    namespace: str = ""  # namespace of a pod that uses the GPU
    state: str = ""  # of its node
    severity: str = ""  # of its worst finding
    faults: str = ""  # not blank: only GPUs with a finding above severity note
    metric: str = ""  # key of a metric: only GPUs with a value above 0, unless the next two fields say otherwise
    reading: str = ""  # of `READINGS`
    at_least: str = ""  # a number in the metric's unit
    ordering: str = WORST_FIRST
    columns: tuple[str, ...] = ()  # none: the usual

    @classmethod
    def read(cls, query: QueryDict) -> "GpuFilter":
        """Returns the filter as a page reads it. Unknown values match nothing, and an unknown order is the default."""
        given = {name: query.get(name, "").strip()[:LONGEST] for name in PARTS}
        if given["metric"]:
            given |= {name: query.get(name, "").strip()[:LONGEST] for name in OF_A_METRIC}
        ordering = query.get("ordering", "")[:LONGEST]
        wanted = {key[:LONGEST] for key in query.getlist("column")[: len(COLUMNS)]}
        chosen = tuple(key for key in COLUMNS if key in wanted and not COLUMNS[key].is_fixed)
        chosen = () if chosen == USUAL else chosen
        return cls(**given, ordering=ordering if ordering in ORDERS else WORST_FIRST, columns=chosen)

    @property
    def active(self) -> list[str]:
        return [name for name in PARTS if getattr(self, name)]

    @property
    def shown(self) -> list[GpuColumn]:
        return [
            column
            for key, column in COLUMNS.items()
            if column.is_fixed
            or (key in self.columns if self.columns else column.is_usual)
            or self.metric in column.metrics
        ]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Returns the metrics to read: the usual ones, and those shown, sorted or filtered by."""
        asked = {self.order_key, self.metric, *(key for column in self.shown for key in column.metrics)}
        return (*READ, *(key for key in METRICS if key in asked and key not in READ))

    @property
    def compares(self) -> bool:
        return self.reading in {"", ZERO}

    def wants(self, reading: MetricReading) -> bool:
        """Returns whether a reading of the filtered metric matches.

        Outdated values match too, and are marked in the table.
        """
        if not self.compares and (reading.state.value != self.reading or not self.at_least):
            return reading.state.value == self.reading
        value = reading.value
        if value is None:
            return False
        if self.metric == "clock_reasons":  # the other bits slow nothing down
            value = float(int(value) & SLOWING_BITS)
        if self.reading == ZERO and value != 0:
            return False
        if self.at_least:
            least = number(self.at_least)
            return least is not None and value >= least
        return self.reading == ZERO or value > 0

    @property
    def order_key(self) -> str:
        return self.ordering.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.ordering.startswith("-")

    def without(self, name: str) -> "GpuFilter":
        names = (name, *OF_A_METRIC) if name == "metric" else (name,)
        return replace(self, **dict.fromkeys(names, ""))  # type: ignore[arg-type]

    def ordered_by(self, column: GpuColumn) -> "GpuFilter":
        """Returns the filter after a click on a column's head. A second click reverses the order."""
        if self.order_key != column.key:
            return replace(self, ordering=column.first_order)
        return replace(self, ordering=column.key if self.is_descending else f"-{column.key}")

    def query(self) -> str:
        """Returns the query string; empty for all GPUs in the default order."""
        names = [*self.active, *(name for name in OF_A_METRIC if self.metric and getattr(self, name))]
        given: dict[str, str | tuple[str, ...]] = {name: getattr(self, name) for name in names}
        if self.ordering != WORST_FIRST:
            given["ordering"] = self.ordering
        if self.columns:
            given["column"] = self.columns
        return urlencode(given, doseq=True, errors="replace")


def number(text: str) -> float | None:
    """Returns the number written in ASCII digits; None if it is none."""
    return float(text) if NUMBER.fullmatch(text) else None
