"""A comparable healthy node, whose values are shown beside those of the node with a finding.

It has the same product, driver and layout, and shares a pool with this node. The same rows always give the same node.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Exists, F, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import Abs

from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Node, Pool
from fleet.models.node import members_of
from fleet.queries import seen_pools_of
from fleet.states.node import NodeState
from health.inbox.hours import HOURS, NodeHour, hours_of
from health.models import Finding
from health.rules.base import Severity
from health.sources.node_telemetry import NodeTelemetry, telemetry_of
from health.sources.readings import MetricReading
from people.models import User
from wording.instants import moment
from wording.numbers import either

HEALTHY = (NodeState.READY, NodeState.HELD)
MOST_LABELS = 20
NOTHING = "No comparable node exists"
OF_THE_STACK = ("nvidia.com/", "amd.com/", "habana.ai/", "node.kubernetes.io/", "topology.kubernetes.io/")
# Properties that differ on every node, or change with time alone.
OF_ITS_OWN = ("timestamp", "hostname", "driver-upgrade-state")
PropertyText = Callable[[Node], str]
PROPERTIES: tuple[tuple[str, PropertyText], ...] = (
    ("Kernel", lambda node: node.kernel),
    ("OS", lambda node: node.os_image),
    ("Container runtime", lambda node: node.container_runtime),
    ("Kubelet", lambda node: node.kubelet_version),
    ("Kind of machine", lambda node: node.instance_type),
    ("Capacity", lambda node: node.capacity_type),
    ("Zone", lambda node: node.zone),
    ("NVLink domain", lambda node: node.nvlink_domain),
    ("GPUs allocated", lambda node: str(node.gpu_allocated)),
    ("GPUs that can be allocated", lambda node: _whole_number_text(node.gpu_allocatable)),
    ("Device plugin's configuration", lambda node: node.plugin_config),
    ("Taints", lambda node: ", ".join(sorted(f"{one['key']}:{one['effect']}" for one in node.taints))),
)


@dataclass(frozen=True)
class Compared:
    title: str
    here: str  # blank: nothing is known
    there: str


@dataclass(frozen=True)
class ComparableNode:
    """A comparable node and why it was chosen. If `node` is None, there is none, and `reason` says why."""

    node: Node | None
    reason: str
    properties: Sequence[Compared] = ()  # the properties that differ
    measured: Sequence[Compared] = ()  # present values and hourly means of the GPUs, equal or not
    alike: Sequence[str] = ()  # titles of the properties that do not differ


def comparable_node_of(node: Node, user: User, *, now: datetime) -> ComparableNode:
    """Returns a comparable node, with 20 queries at most. Only one candidate node is loaded."""
    chosen, reason = chosen_for(node, user, now=now)
    if chosen is None:
        return ComparableNode(None, reason)
    pairs = [Compared(title, said(node), said(chosen)) for title, said in PROPERTIES]
    different = [pair for pair in pairs if pair.here != pair.there]
    return ComparableNode(
        chosen,
        reason,
        properties=[*different, *labels_of(node, chosen, different)],
        measured=[
            *differences_now(telemetry_of(node, now=now), telemetry_of(chosen, now=now)),
            *differences_by_hour(*(hours_of(one, hours=HOURS, now=now) for one in (node, chosen))),
        ],
        alike=[pair.title for pair in pairs if pair not in different and pair.here],
    )


def chosen_for(node: Node, user: User, *, now: datetime) -> tuple[Node | None, str]:
    """Returns the best candidate: the same kernel first, then the closest GPU utilisation, then the first by name."""
    if not node.gpu_product:
        return None, f"{NOTHING}: the product of its GPUs is unknown."
    freshness = load_cluster_freshness(node.cluster, now=now)
    if freshness.last_seen_at is None:
        return None, f"{NOTHING}: its cluster was never observed, so its healthy nodes are unknown."
    verb = "is" if freshness.is_fresh else "was"
    then = (
        "" if freshness.is_fresh else f" when its cluster was last observed, {moment(freshness.last_seen_at, now=now)}"
    )
    product, driver = node.gpu_product, node.driver_version
    last_named = (
        ", the last version that this node reported; its label is gone" if driver and node.driver_unknown_since else ""
    )
    pools = list(seen_pools_of(node, user=user))
    where = f"pool {' or '.join(pool.name for pool in pools)}" if pools else "its cluster without a pool"
    running = f"runs driver {driver}{last_named}" if driver else "reports no driver version"
    others = Node.objects.visible_to(user).with_gpus().filter(cluster=node.cluster_id, gpu_product=product)
    rows = _nodes_of_pools(others.exclude(pk=node.pk), pools)
    if not rows.exists():
        return None, f"{NOTHING}: no other node of {where} that you may see has GPUs {product}."
    muted = Finding.objects.muted().exclude(severity=Severity.NOTE).filter(node=OuterRef("pk"))
    # The candidates, the property they must share, and how the only candidate differs.
    steps = (
        (
            f"with them in {where}",
            running,
            f"does not report driver {driver}{last_named}" if driver else "names its driver",
            Q(reported_driver=driver),
        ),
        (
            "with its driver",
            "partitions and shares its GPUs in the same way",
            "partitions and shares its GPUs in another way",
            Q(layout=node.layout),
        ),
        (
            "like it",
            f"{verb} healthy{then or ' now'}",
            f"{verb} not healthy{then or ' now'}",
            Q(state_code__in=list(map(int, HEALTHY))),
        ),
        (
            "like it and healthy",
            "is without a muted finding",
            "has a muted finding",
            ~Q(Exists(muted)),  # the node's state does not include muted findings
        ),
    )
    for such, wanted, instead, narrowed in steps:
        before, rows = rows, rows.filter(narrowed)
        if not rows.exists():
            number = before.count()
            only, none = f"the only node {such} {instead}", f"none of the {number} nodes {such} {wanted}"
            return None, f"{NOTHING}: {either(number, only, none)}."
    number, one = rows.count(), _nearest_node(rows, node)
    said = f"It {verb} healthy{then}, of {where}, has GPUs {product} and {running}"
    if number == 1:
        return one, f"{said}; it is the only such node."
    nearest = "the same kernel" if one.kernel == node.kernel else "another kernel, as they all have,"
    return one, (
        f"{said}. Of {number} such nodes, it is the first by name with {nearest} and a similar number of "
        f"allocated GPUs ({one.gpu_allocated}; this node: {node.gpu_allocated})."
    )


def _nearest_node(rows: QuerySet[Node], node: Node) -> Node:
    other_kernel = Case(When(kernel=node.kernel, then=Value(0)), default=Value(1), output_field=IntegerField())
    return rows.order_by(other_kernel, Abs(F("gpu_allocated") - Value(node.gpu_allocated)), "name")[0]


def _nodes_of_pools(rows: QuerySet[Node], pools: Sequence[Pool]) -> QuerySet[Node]:
    return rows.filter(pk__in=members_of([pool.pk for pool in pools])) if pools else rows.filter(pools__isnull=True)


def labels_of(node: Node, comparable: Node, said: Sequence[Compared]) -> list[Compared]:
    """Returns the labels of the stack that differ and that no property has shown already."""
    told = {(each.here, each.there) for each in said}
    names = sorted({*node.labels, *comparable.labels})
    found = [
        Compared(name, str(node.labels.get(name, "")), str(comparable.labels.get(name, "")))
        for name in names
        if name.startswith(OF_THE_STACK) and not name.endswith(OF_ITS_OWN)
    ]
    return [each for each in found if each.here != each.there and (each.here, each.there) not in told][:MOST_LABELS]


def differences_now(here: NodeTelemetry, there: NodeTelemetry, *, is_of_one: bool = False) -> Iterator[Compared]:
    """Yields fresh values that differ: of a node's GPUs the hottest, and the mean of the rest.

    `is_of_one` is true when each side is one GPU.
    """
    asked = (
        ("Temperature now", "Hottest GPU now", "temperature_celsius", max, "{:.0f} °C"),
        ("Power now", "Power now, mean", "power_watts", _mean_of, "{:.0f} W"),
        ("Power limit", "Power limit, lowest", "power_limit_watts", min, "{:.0f} W"),
        ("SM clock now", "SM clock now, lowest", "sm_clock_mhz", min, "{:.0f} MHz"),
        ("Memory clock now", "Memory clock now, lowest", "memory_clock_mhz", min, "{:.0f} MHz"),
        ("Uncorrected ECC errors", "Uncorrected ECC errors", "ecc_uncorrected", sum, "{:.0f}"),
        ("PCIe replays", "PCIe replays", "pcie_replays", sum, "{:.0f}"),
    )
    busy = "Utilisation now" if is_of_one else "Utilisation now, mean"
    yield Compared(busy, *map(_utilisation_text, (here, there)))
    for of_one, of_all, key, of, form in asked:
        said = (_format_value(_newest_readings(each, key), of, form) for each in (here, there))
        yield Compared(of_one if is_of_one else of_all, *said)


def _utilisation_text(known: NodeTelemetry) -> str:
    """Returns the utilisation of each slice, and of each board that is not partitioned, as text."""
    cut = {device.uuid for device in known.devices if device.gi_id}
    readings = [device.busy for device in known.devices if device.gi_id or device.uuid not in cut]
    return _format_value(readings, _mean_of, "{:.0%}", called="GPUs and slices" if cut else "GPUs")


def _newest_readings(known: NodeTelemetry, key: str) -> list[MetricReading]:
    """Returns the newest reading of each board. The exporter repeats a board's value on each of its slices."""
    boards: dict[str | int | None, list[MetricReading]] = defaultdict(list)
    for device in known.devices:
        boards[device.uuid or device.index].append(device.metrics[key])
    return [max(of, key=lambda each: (each.is_fresh, each.sampled_at or 0.0)) for of in boards.values()]


def _format_value(
    readings: Sequence[MetricReading], of: Callable[[list[float]], float], form: str, *, called: str = "GPUs"
) -> str:
    values = [reading.value for reading in readings if reading.is_fresh and reading.value is not None]
    if not values:
        return readings[0].state.value.replace("-", " ") if readings else ""
    some = "" if len(values) == len(readings) else f" ({len(values)} of {len(readings)} {called})"
    return form.format(of(values)) + some


def differences_by_hour(here: Sequence[NodeHour], there: Sequence[NodeHour]) -> Iterator[Compared]:
    yield Compared(f"GPU-hours under load in the last {HOURS} h", *(_busy_hours_text(hours) for hours in (here, there)))
    yield Compared("GPU-hours measured", *(f"{sum(hour.seen_h for hour in hours):.1f}" for hours in (here, there)))
    yield Compared("Hours with findings", *(str(sum(bool(hour.findings) for hour in hours)) for hours in (here, there)))
    yield Compared("Xids, at least", *(_xids(hours) for hours in (here, there)))


def _busy_hours_text(hours: Sequence[NodeHour]) -> str:
    known = [hour.busy_h for hour in hours if hour.busy_h is not None]
    return f"{sum(known):.1f}" if known else ""


def _xids(hours: Sequence[NodeHour]) -> str:
    known = [hour.xids for hour in hours if hour.xids is not None]
    return str(sum(known)) if known else ""


def _mean_of(values: list[float]) -> float:
    return sum(values) / len(values)


def _whole_number_text(number: int | None) -> str:
    return "" if number is None else str(number)
