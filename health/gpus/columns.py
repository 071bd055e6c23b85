"""The columns of the GPU table and their sort keys. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from health.sources.readings import UTILISATION
from health.telemetry.metrics import METRICS, Metric

WORST_FIRST = "-health"
# Read for every GPU, whichever columns are shown: the default columns need them.
READ = (
    *UTILISATION,
    "memory_used_mib",
    "memory_free_mib",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "xid",
)
UNITLESS = frozenset({"throttled_power", "throttled_thermal", "throttled_board", "throttled_reliability"})


@dataclass(frozen=True)
class GpuColumn:
    key: str
    title: str
    can_order: bool = True
    is_number: bool = False
    is_usual: bool = True  # shown unless somebody chose columns
    is_fixed: bool = False  # always shown
    note: str = ""
    # First order after a click on the column head: numbers descending, text ascending.
    first: str = ""
    metrics: tuple[str, ...] = ()  # that it is sorted by: the first that a board has

    @property
    def first_order(self) -> str:
        return self.first or (f"-{self.key}" if self.is_number else self.key)


def _column_of_metric(metric: Metric) -> GpuColumn:
    note = "Whether the counter is above 0. The exporter does not state its unit" if metric.key in UNITLESS else ""
    return GpuColumn(
        metric.key, metric.title, can_order=metric.key != "clock_reasons", is_number=True, is_usual=False, note=note,
        metrics=(metric.key,),
    )  # fmt: skip


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
        GpuColumn("health", "Health", first=WORST_FIRST, note="The worst open finding of the GPU or its node"),
        GpuColumn("temperature", "Temperature", is_number=True, metrics=("temperature_celsius",)),
        GpuColumn("utilisation", "Utilisation", is_number=True, metrics=UTILISATION),
        GpuColumn("memory", "Memory used", is_number=True, metrics=("memory_used_mib",)),
        GpuColumn("power", "Power", is_number=True, metrics=("power_watts",)),
        GpuColumn(
            "xid", "Last Xid", first="-xid", note="Since the driver was loaded, without times", metrics=("xid",)
        ),
        *(_column_of_metric(metric) for key, metric in METRICS.items() if key not in READ),
        GpuColumn("driver", "Driver"),
        GpuColumn("sampled", "Sampled", note="Time of the newest sample of these metrics"),
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
    **{
        f"{sign}{key}": f"{column.title}: {way} first"
        for key, column in COLUMNS.items()
        if key in METRICS and key not in READ and column.can_order
        for sign, way in (("-", "most"), ("", "least"))
    },
}
