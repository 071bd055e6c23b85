"""What somebody wants of the table of GPUs, as an address or a question to REST has it. Pure but for the query."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import QueryDict

from health.gpus.columns import COLUMNS, ORDERS, USUAL, WORST_FIRST, GpuColumn
from health.rules.base import Severity

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
}


@dataclass(frozen=True)
class GpuFilter:
    q: str = ""  # a part of a node's name or of a UUID
    cluster: str = ""
    pool: str = ""  # cluster/pool
    product: str = ""
    namespace: str = ""  # of a pod that has it
    state: str = ""  # of its node
    severity: str = ""  # of its worst finding
    faults: str = ""  # anything: only those with a finding that is no mere note
    ordering: str = WORST_FIRST
    columns: tuple[str, ...] = ()  # none: the usual

    @classmethod
    def read(cls, query: QueryDict) -> "GpuFilter":
        """As a page reads it: what there is not finds nothing, and an order that there is not is the usual one."""
        given = {name: query.get(name, "").strip()[:LONGEST] for name in PARTS}
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
            if column.is_fixed or (key in self.columns if self.columns else column.is_usual)
        ]

    @property
    def order_key(self) -> str:
        return self.ordering.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.ordering.startswith("-")

    def without(self, name: str) -> "GpuFilter":
        return replace(self, **{name: ""})  # type: ignore[arg-type]

    def ordered_by(self, column: GpuColumn) -> "GpuFilter":
        """As a click on its head sorts: the other way round where it is sorted by that already."""
        if self.order_key != column.key:
            return replace(self, ordering=column.first_order)
        return replace(self, ordering=column.key if self.is_descending else f"-{column.key}")

    def query(self) -> str:
        """As the address has it; blank for all there is, as it usually is."""
        given: dict[str, str | tuple[str, ...]] = {name: getattr(self, name) for name in self.active}
        if self.ordering != WORST_FIRST:
            given["ordering"] = self.ordering
        if self.columns:
            given["column"] = self.columns
        return urlencode(given, doseq=True, errors="replace")
