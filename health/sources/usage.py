"""The daily sums of GPU-hours by use: adds each hour of a cluster once, after it ended.

The service state, pools and GPUs of a node are those of the moment when its hour is recorded.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F

from fleet.allocation.sums import PoolKeys, addition_to
from fleet.models import Node
from fleet.models.sums import AddedUp
from gpu.resources import Layout, fraction_of
from health.models import NamespaceUsage, OwnerUsage, UsageDay, WorkloadActivity
from health.sources.allocated_hours import AllocatedHour, HeldInHour
from health.telemetry.activity import activity_of
from health.telemetry.hours import GpuHourSums
from health.telemetry.usage import GpuUse, HourHolder, HourOfNode, MeasuredDevice, Owner, node_hours

HOUR = timedelta(hours=1)
# Of apps above: called once with the cluster's key and the hour, after its sums are written.
RECORDED: list[Callable[[int, datetime], None]] = []
# Of apps above: the names of a cluster's nodes that an operation or a plan changes now, by the cluster's key.
IN_CHANGE: list[Callable[[int], Collection[str]]] = []
LONGEST = 320  # characters of a workload
COLUMNS = (
    "name", "layout", "gpu_product", "physical_gpus", "gpu_expected", "gpu_allocatable", "is_ready",
    "is_unschedulable", "created_at", "gpu_memory_mib",
)  # fmt: skip
Devices = dict[str, dict[tuple[int, str], MeasuredDevice]]  # by node
Added = Mapping[tuple[tuple[str, ...], str], float]  # by the columns that are alike, and the column of the sum
HourSums = Mapping[tuple[str, Owner, str], float]  # by pools, owner and column


def is_recorded(cluster_id: int, hour: datetime) -> bool:
    days = UsageDay.objects.filter(cluster=cluster_id, day=hour.date())
    return any(hours & _bit_of_hour(hour) for hours in days.values_list("hours", flat=True))


def record(cluster_id: int, hour: datetime, allocated: AllocatedHour, measured: Iterable[GpuHourSums] = ()) -> bool:
    """Adds the hour, and returns whether it was not recorded before. One query for the nodes, and five for the sums."""
    measured, nodes = list(measured), _nodes(cluster_id, hour)
    sums, uncounted = _sums(cluster_id, nodes, hour, allocated, measured)
    with transaction.atomic():
        UsageDay.objects.bulk_create([UsageDay(cluster_id=cluster_id, day=hour.date())], ignore_conflicts=True)
        day = UsageDay.objects.annotate(has=F("hours").bitand(_bit_of_hour(hour))).filter(
            cluster=cluster_id, day=hour.date()
        )
        # Of two that record one hour, the second waits here, and then finds the bit.
        if not day.filter(has=0).update(hours=F("hours").bitor(_bit_of_hour(hour)), uncounted=uncounted):
            return False
        uses: Added = {((pools, *owner), use): number for (pools, owner, use), number in sums.items()}
        _add(NamespaceUsage, cluster_id, hour, uses)
        _add(OwnerUsage, cluster_id, hour, uses)
        _add(WorkloadActivity, cluster_id, hour, _activity(nodes, allocated, measured))
    for listener in RECORDED:
        listener(cluster_id, hour)
    return True


def _add(model: type[AddedUp], cluster_id: int, hour: datetime, sums: Added) -> None:
    rows: dict[tuple[str, ...], dict[str, float]] = defaultdict(lambda: dict.fromkeys(model.added_up(), 0.0))
    width = len(model.alike) - len(("cluster", "day"))
    for (alike, column), number in sums.items():
        rows[alike[:width]][column] += number
    adding: Any = [(cluster_id, hour.date(), *key, *row.values()) for key, row in sorted(rows.items())]
    if not adding:
        return
    with connection.cursor() as cursor:
        cursor.executemany(addition_to(model), adding)


def _bit_of_hour(hour: datetime) -> int:
    return 1 << hour.astimezone(UTC).hour


def _nodes(cluster_id: int, hour: datetime) -> list[Mapping[str, Any]]:
    nodes = Node.objects.filter(cluster=cluster_id, created_at__lt=hour + HOUR).with_gpus().order_by()
    return list(nodes.annotate(pool_keys=PoolKeys(F("pk"))).values(*COLUMNS, "pool_keys"))


def _activity(nodes: Iterable[Mapping[str, Any]], allocated: AllocatedHour, measured: Iterable[GpuHourSums]) -> Added:
    """Returns the activity of GPUs that one workload had for the whole hour, by pools, owner and column."""
    by_name = {row["name"]: row for row in nodes}
    found: dict[tuple[tuple[str, ...], str], float] = defaultdict(float)
    for sums in measured:
        row, owner = by_name.get(sums.device.node_name), allocated.only_owner_of(sums.device)
        if row is not None and owner is not None:
            for column, number in activity_of(sums, row["gpu_memory_mib"]).items():
                found[(row["pool_keys"], owner[0], owner[1][:LONGEST]), column] += number
    return found


def _sums(
    cluster_id: int, rows: Sequence[Mapping[str, Any]], hour: datetime, allocated: AllocatedHour,
    measured: Iterable[GpuHourSums],
) -> tuple[HourSums, int]:  # fmt: skip
    """Returns the GPU-hours by pools and owner, and the number of nodes whose GPUs nobody counted."""
    devices = _devices(allocated, measured)
    in_change = {name for names_of in IN_CHANGE for name in names_of(cluster_id)}
    sums: dict[tuple[str, Owner, str], float] = defaultdict(float)
    gone = ({"name": name} for name in {*allocated.held, *devices} - {row["name"] for row in rows})
    uncounted = 0
    for row in (*rows, *gone):
        is_in_change = row["name"] in in_change
        node = _node(row, hour, allocated, devices.get(row["name"], {}), is_in_change=is_in_change)
        uncounted += not node.gpus and "pool_keys" in row
        found, pools = node_hours(node), row.get("pool_keys", "")
        for (owner, use), number in found.by_use.items():
            sums[pools, owner, use] += number
            if use is GpuUse.USED:
                sums[pools, owner, "rated"] += number
        for owner, number in found.under_used.items():
            sums[pools, owner, "under_used"] += number
    return sums, uncounted


def _node(
    row: Mapping[str, Any], hour: datetime, allocated: AllocatedHour,
    devices: Mapping[tuple[int, str], MeasuredDevice], *, is_in_change: bool,
) -> HourOfNode:  # fmt: skip
    """Returns the hour of a node. A node that left has its name alone, and counts while pods had known GPUs of it."""
    layout, product = Layout.read(row.get("layout", "")), row.get("gpu_product", "")
    holders = [_holder(each, hour, layout, product) for each in allocated.held.get(row["name"], ())]
    if "layout" not in row:
        return HourOfNode(0, is_seen=allocated.is_seen, holders=holders, devices=devices)
    return HourOfNode(
        gpus=row["physical_gpus"] or len({index for index, _ in devices}),
        present_s=min(HOUR, hour + HOUR - row["created_at"]).total_seconds(),
        is_in_service=row["is_ready"] is True and not row["is_unschedulable"],
        is_in_repair=row["is_ready"] is not True or is_in_change,
        unhealthy=max(0, (row["gpu_expected"] or 0) - (row["gpu_allocatable"] or 0)),
        is_seen=allocated.is_seen,
        holders=holders,
        devices=devices,
    )


def _holder(held: HeldInHour, hour: datetime, layout: Layout, product: str) -> HourHolder:
    row = held.row
    asks = fraction_of(row.resources, layout, product=product)
    return HourHolder(
        owner=(row.namespace, row.workload[:LONGEST]),
        since_s=(held.since - hour).total_seconds(),
        until_s=(held.until - hour).total_seconds(),
        gpus=asks.gpus,
        is_shared=asks.is_shared,
        boards=held.gpus.indices,
        slices=[(index, number) for index, number in held.gpus.slices],
        is_seen=held.is_seen,
    )


def _devices(allocated: AllocatedHour, measured: Iterable[GpuHourSums]) -> Devices:
    found: Devices = defaultdict(dict)
    for sums in measured:
        index = allocated.index_of(sums.device)
        if index is not None:
            found[sums.device.node_name][index, sums.device.gi_id] = MeasuredDevice(sums.seen_s, sums.utilisation)
    return found
