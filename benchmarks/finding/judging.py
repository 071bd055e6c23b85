"""One look at a cluster whose rows and frame are made, a few of its GPUs sick: what it costs of CPU."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import django

SICK = 20  # nodes, each with one GPU that had an Xid
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class LookCost:
    look_s: float  # of CPU, as the other two
    gpus_s: float  # of it what is about GPUs
    keep_s: float  # a frame into Redis
    queries: int
    kib: int  # that a frame takes there
    longest_write_ms: float  # by the clock: of what opens and ends a finding on every node at once
    findings: int  # that did


def judge(nodes: int) -> LookCost:
    """The median of three looks, after one that opens the findings."""
    django.setup()
    from django.core.management import call_command
    from django.db import connection, reset_queries
    from django.utils import timezone

    call_command("migrate", verbosity=0)
    from health.evaluation.evaluation_round import evaluate_cluster
    from health.evaluation.gpu_evaluation import evaluate_gpus
    from health.evaluation.limits_in_force import LimitsInForce
    from health.sources import snapshots

    now = timezone.now()
    cluster, reading = _cluster(nodes, now), _reading(nodes, now.timestamp())
    keep_s = _cpu_s(lambda: snapshots.store(cluster.pk, reading))
    evaluate_cluster(cluster, now=now)
    connection.force_debug_cursor = True
    reset_queries()
    evaluate_cluster(cluster, now=now + timedelta(seconds=1))
    queries, connection.force_debug_cursor = len(connection.queries), False
    looks = sorted(_cpu_s(lambda: evaluate_cluster(cluster, now=now + timedelta(seconds=10))) for _ in range(3))
    gpus = sorted(
        _cpu_s(lambda: evaluate_gpus(cluster, LimitsInForce(), now=now + timedelta(seconds=10))) for _ in range(3)
    )
    longest_ms, findings = _at_once(cluster, now + timedelta(minutes=1))
    kib = 16 * len(reading.snapshot.devices) * 20 // 1024
    return LookCost(looks[1], gpus[1], keep_s, queries, kib, longest_ms, findings)


def _at_once(cluster: Any, now: Any) -> tuple[float, int]:
    """Every node lacks a GPU, and later none does: the longest transaction, and how many findings that makes."""
    from benchmarks.writes import watch_writes
    from fleet.models import Bookmark, Node
    from health.evaluation.evaluation_round import evaluate_cluster

    found, longest_ms = 0, 0.0
    for minutes, there in ((0, 7), (3, 7), (6, 8)):
        at = now + timedelta(minutes=minutes)
        Node.objects.filter(cluster=cluster).update(allocatable={GPU: there})
        Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
        with watch_writes() as writes:
            found = max(found, evaluate_cluster(cluster, now=at))
        longest_ms = max(longest_ms, writes.longest_ms)
    return longest_ms, found


def _cluster(nodes: int, now: Any) -> Any:
    from fleet.freshness.kinds import NODES
    from fleet.models import Bookmark, Cluster, Node, Observer

    cluster = Cluster.objects.create(name="bench", uid="bench", added_at=now)
    Observer.objects.create(cluster=cluster, lease_until=now + timedelta(hours=1))
    Bookmark.objects.create(
        cluster=cluster, kind=NODES, state="watching", state_since=now, last_seen_at=now, listed_at=now
    )
    counts = {GPU: 8}
    rows = [
        Node(
            cluster=cluster, uid=f"uid-{number}", name=f"gpu-{number:05}", resource_version="1", created_at=now,
            changed_at=now, is_ready=True, is_gpu_node=True, gpu_product="NVIDIA-H200", allocatable=counts,
            capacity=counts, expected=counts, layout="gpu=whole", labels={"nvidia.com/gpu.present": "true"},
        )
        for number in range(nodes)
    ]  # fmt: skip
    Node.objects.bulk_create(rows, batch_size=500)
    return cluster


def _reading(nodes: int, at: float) -> Any:
    from health.telemetry.base import TelemetryReading
    from health.telemetry.metrics import METRICS
    from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
    from health.telemetry.snapshot_memory import remember

    devices = tuple(
        GpuDevice(f"gpu-{place // 8:05}", place % 8, f"GPU-{place:08x}-1111-2222-3333-444444444444")
        for place in range(8 * nodes)
    )
    before = TelemetrySnapshot(at - 15, devices)
    snapshot = before.copied()
    snapshot.taken_at = at
    for key in list(METRICS)[:20]:
        column = snapshot.columns[key] = MetricColumn.empty(len(devices))
        for place in range(len(devices)):
            column.values[place], column.times[place] = 0.0, at - 5
    for place in range(0, min(SICK, nodes) * 8, 8):
        snapshot.columns["xid"].values[place] = 79.0
    remember(before, snapshot)
    return TelemetryReading(snapshot, frozenset(snapshot.columns), {})


def _cpu_s(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began
