"""Open findings by rule, and idle GPUs by pool."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from fleet.models import Pool
from health.models import Finding
from health.rules.idle_gpus import IdleGpus, reported_hours_of


def families(now: datetime) -> Iterator[Metric]:  # noqa: ARG001 - each source takes the time
    yield _findings()
    yield _idle_gpus()


def _findings() -> GaugeMetricFamily:
    text = "Open and acknowledged findings of rules that are not in shadow mode. Muted findings are not counted."
    gauge = GaugeMetricFamily("quarterdeck_findings", text, labels=["cluster", "rule", "severity", "state"])
    kinds = Finding.objects.open().order_by().values_list("cluster__name", "rule", "severity", "state")
    for *labels, number in kinds.annotate(Count("pk")):
        gauge.add_metric(labels, number)
    return gauge


def _idle_gpus() -> GaugeMetricFamily:
    """Returns the boards that open findings name. An allocation whose board is unknown counts as one."""
    text = "GPUs that open findings report as allocated and idle, at least."
    gauge = GaugeMetricFamily("quarterdeck_pool_idle_gpus", text, labels=["cluster", "pool"])
    idle: Counter[int] = Counter()
    findings = Finding.objects.open().filter(rule=IdleGpus.key, node__pools__isnull=False).order_by()
    for pool, facts in findings.values_list("node__pools", "facts"):
        idle[pool] += len({board or pod for pod, board in reported_hours_of(facts)})
    for pk, cluster, name in Pool.objects.order_by("cluster__name", "name").values_list("pk", "cluster__name", "name"):
        gauge.add_metric([cluster, name], idle[pk])
    return gauge
