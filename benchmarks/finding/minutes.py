"""A day of one cluster's GPUs at one minute: what writing a minute costs, how large the day is, what a plot costs."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import django

from benchmarks.figures import percentile

GPUS = 8
MINUTES = 60  # that are lived; their blocks are copied for the rest of the day
HOURS = 24
LOOKS = 9
RANGES = {
    "gpu_utilisation_ratio": (0, 1), "tensor_active_ratio": (0, 1), "memory_used_mib": (0, 81_000),
    "temperature_celsius": (30, 85), "power_watts": (70, 700), "sm_clock_mhz": (300, 1980), "xid": (0, 0),
}  # fmt: skip


@dataclass(frozen=True)
class MinutesCost:
    keep_ms: float  # of CPU for one minute of all nodes, the median
    transaction_ms: float  # of wall time: 99 of 100 are shorter
    plot_ms: float  # of CPU for one answer of REST with the 24 h of a node, the median
    plot_queries: int
    mib: float  # all blocks of the day


def live_a_day(nodes: int) -> MinutesCost:
    django.setup()
    from django.core.management import call_command
    from django.db.models import Sum
    from django.db.models.functions import Length
    from django.utils import timezone

    call_command("migrate", verbosity=0)
    from fleet.models import Cluster
    from health.models import GpuMinuteBlock
    from health.sources import minutes

    now = timezone.now()
    cluster = Cluster.objects.create(name="minutes", uid="minutes", added_at=now)
    snapshots, leases = [_frame(nodes, seed) for seed in range(10)], _Leases()
    keeps = []
    for minute in range(MINUTES):
        at = now.timestamp() - 60 * (MINUTES - 1 - minute)
        keep = partial(
            minutes.write_minute,
            cluster.pk,
            _said_at(snapshots[minute % len(snapshots)], at),
            assert_lease=leases.begun,
            now=at,
        )
        keeps.append(_cpu_s(keep))
        leases.ended()
    for hour in range(1, HOURS):
        _copy(GpuMinuteBlock, cluster, now, timedelta(hours=hour))
    packed = GpuMinuteBlock.objects.filter(cluster=cluster).aggregate(size=Sum(Length("packed")))["size"]
    plots, queries = _plots(cluster, _said_at(snapshots[0], now.timestamp()), now)
    return MinutesCost(
        1000 * percentile(keeps, 0.5), 1000 * percentile(leases.took, 0.99), 1000 * percentile(plots, 0.5), queries,
        packed / 2**20,
    )  # fmt: skip


def _copy(model: Any, cluster: Any, now: Any, earlier: timedelta) -> None:
    """The blocks of the last hour, so much earlier."""
    rows = list(model.objects.filter(cluster=cluster, begins_at__gt=now - timedelta(hours=1)))
    for row in rows:
        row.begins_at -= earlier
    model.objects.bulk_create(rows, ignore_conflicts=True)  # the first block of the hour is the last one's, copied


class _Leases:
    """How long each transaction takes: from its assertion of the lease to the next one's."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self._began = 0.0

    def begun(self) -> None:
        self.ended()
        self._began = time.perf_counter()

    def ended(self) -> None:
        if self._began:
            self.took.append(time.perf_counter() - self._began)
        self._began = 0.0


def _plots(cluster: Any, snapshot: Any, now: Any) -> tuple[list[float], int]:
    """Seconds of CPU of each answer, and the queries of one."""
    from django.db import connection, reset_queries
    from rest_framework.test import APIClient

    from fleet.models import ExporterRound, Node
    from health.sources import snapshots
    from health.telemetry.base import TelemetryReading
    from people.models import RoleBinding, User

    ExporterRound.objects.create(
        cluster=cluster, lease_until=now, next_look_at=now, state="asked", state_since=now, read_at=now
    )
    snapshots.store(cluster.pk, TelemetryReading(snapshot, frozenset(RANGES), {}))
    node = Node.objects.create(
        cluster=cluster, uid="minutes-0", name=snapshot.devices[0].node_name, resource_version="1", created_at=now,
        changed_at=now, is_ready=True, is_gpu_node=True,
    )  # fmt: skip
    caller = APIClient(SERVER_NAME="localhost")
    reader = User.objects.create(username="minutes")
    RoleBinding.objects.create(user=reader, role="viewer", scope="fleet", scope_id=0)
    caller.force_authenticate(reader)
    ask = partial(caller.get, f"/api/v1/nodes/{node.pk}/telemetry/history?window=24h")
    connection.force_debug_cursor = True
    reset_queries()
    answer = ask()
    queries, connection.force_debug_cursor = len(connection.queries), False
    lines = [line for plot in answer.json()["plots"] for line in plot["lines"]]
    if len(lines) != GPUS * (len(RANGES) - 1) or not all(line["values"][-2:] != [None, None] for line in lines):
        raise AssertionError(f"{len(lines)} lines are drawn, and not all: {answer.json()['trouble']}")
    return [_cpu_s(ask) for _ in range(LOOKS)], queries


def _frame(nodes: int, seed: int) -> Any:
    from array import array

    from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot

    drawn = random.Random(seed)
    devices = [
        GpuDevice(f"gpu-{number:05}", index, f"GPU-{number:08x}-{index:04}-2222-3333-444444444444")
        for number in range(nodes)
        for index in range(GPUS)
    ]
    columns = {
        key: MetricColumn(array("d", [drawn.uniform(*ends) for _ in devices]), array("d", [0.0]) * len(devices))
        for key, ends in RANGES.items()
    }
    return TelemetrySnapshot(0.0, devices, columns)


def _said_at(snapshot: Any, at: float) -> Any:
    from array import array

    times = array("d", [at]) * len(snapshot.devices)
    columns = {key: replace(column, times=times) for key, column in snapshot.columns.items()}
    return replace(snapshot, taken_at=at, columns=columns)


def _cpu_s(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began
