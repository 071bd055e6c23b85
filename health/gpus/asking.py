"""What somebody wants of the table of GPUs, as an address or a question to REST has it. Pure but for the query."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import QueryDict

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
WORST_FIRST = "-health"


@dataclass(frozen=True)
class GpuColumn:
    key: str
    title: str
    can_order: bool = True
    is_number: bool = False
    is_usual: bool = True  # shown unless somebody chose columns
    is_fixed: bool = False  # always shown
    note: str = ""
    # What a click on its head sorts by first, from above: of numbers the most, of words the first.
    first: str = ""

    @property
    def first_order(self) -> str:
        return self.first or (f"-{self.key}" if self.is_number else self.key)


COLUMNS: Mapping[str, GpuColumn] = {
    column.key: column
    for column in (
        GpuColumn("node", "Node", is_fixed=True),
        GpuColumn("gpu", "GPU", can_order=False, is_fixed=True),
        GpuColumn("uuid", "UUID", can_order=False, is_usual=False),
        GpuColumn("pool", "Pool", can_order=False),
        GpuColumn("product", "Product"),
        GpuColumn("use", "Use", can_order=False, note="Whole, cut into MIG slices, or shared"),
        GpuColumn("allocation", "Allocated to", can_order=False),
        GpuColumn("health", "Health", first=WORST_FIRST, note="The worst open finding of it, or of its node"),
        GpuColumn("temperature", "Temperature", is_number=True),
        GpuColumn("utilisation", "Utilisation", is_number=True),
        GpuColumn("memory", "Memory used", is_number=True),
        GpuColumn("power", "Power", is_number=True),
        GpuColumn("xid", "Last Xid", first="-xid", note="Since its driver was loaded; when, it does not say"),
        GpuColumn("driver", "Driver"),
        GpuColumn("sampled", "Sampled", note="When its exporter last said any of these"),
    )
}  # fmt: skip
USUAL = tuple(key for key, column in COLUMNS.items() if column.is_usual and not column.is_fixed)
ORDERS = tuple(f"{sign}{key}" for key, column in COLUMNS.items() if column.can_order for sign in ("", "-"))

ORDER_TITLES: Mapping[str, str] = {
    WORST_FIRST: "worst first",
    "health": "best first",
    "node": "by node",
    "-node": "by node, backwards",
    "product": "by product",
    "-product": "by product, backwards",
    "driver": "by driver",
    "-driver": "newest driver first",
    "-temperature": "hottest first",
    "temperature": "coolest first",
    "-utilisation": "busiest first",
    "utilisation": "least busy first",
    "-memory": "most memory used",
    "memory": "least memory used",
    "-power": "most power",
    "power": "least power",
    "-xid": "highest Xid first",
    "xid": "lowest Xid first",
    "sampled": "oldest sample first",
    "-sampled": "newest sample first",
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
