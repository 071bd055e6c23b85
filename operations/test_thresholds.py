"""Thresholds of a test's numbers from passes of other nodes of the pool. Without enough of them nothing is judged.

Lifecycle R35: per product, from the fleet's own passes. A number may be worse than their median by the percentage of
its metric.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from fleet.models import Node, Pool
from operations.models import NodeTestJob
from operations.models.test_job import TestJobOnNode
from operations.pool_tests import tests_of
from operations.test_jobs.node_tests import NODE_TESTS, NodeTest, TestMetric
from operations.test_jobs.test_progress import TestJobOutcome, TestJobProgress
from wording.lists import names
from wording.numbers import count

FEWEST = 5  # nodes with a pass
RECENT = timedelta(days=90)
MOST_ROWS = 500  # newest passes that are read
RESULT_TABLES: list[type[Any]] = [NodeTestJob]  # of apps above, too: they register here


@dataclass(frozen=True)
class Threshold:
    metric: TestMetric
    limit: float | None  # None: too few passes
    passes: int  # nodes with a pass

    def is_met(self, numbers: Mapping[str, float]) -> bool:
        value = numbers[self.metric.path]
        if self.limit is None or self.metric.is_thin(numbers):
            return True
        return value <= self.limit if self.metric.is_lower_better else value >= self.limit

    def sentence(self, numbers: Mapping[str, float]) -> str:
        shown = f"{self.metric.title} {numbers[self.metric.path]:.4g} {self.metric.unit}".strip()
        if self.metric.is_thin(numbers):
            samples = f"{numbers.get(self.metric.samples, 0):g} of the {self.metric.least_samples} samples needed"
            return f"{shown}: measured, not judged: {samples}."
        if self.limit is None:
            return f"{shown}: measured, not judged: {self.passes} of the {FEWEST} passes needed from other nodes."
        side = "at most" if self.metric.is_lower_better else "at least"
        passed = count(self.passes, "other node")
        return f"{shown}, of {side} {self.limit:.4g} by {passed} of the pool."


def compared(result: TestJobProgress, numbers: Mapping[str, float], thresholds: Sequence[Threshold]) -> TestJobProgress:
    """Returns the result of a test that passed, with its numbers against those of the pool (lifecycle R35).

    A number that is not printed is unknown. One without a threshold, or of too few samples, is measured, not judged.
    """
    missing = [each.metric.title for each in thresholds if each.metric.path not in numbers]
    if missing:
        return replace(result, says=f"It printed no {names(missing)}.", outcome=TestJobOutcome.UNKNOWN)
    shown = " ".join(each.sentence(numbers) for each in thresholds)
    if any(not each.is_met(numbers) for each in thresholds):
        return replace(result, says=f"It is slower than the pool. {shown}", outcome=TestJobOutcome.FAILED)
    return replace(result, says=f"{result.says} {shown}".strip())


def thresholds_of(row: TestJobOnNode, *, now: datetime, worse_percent: int = 0) -> Sequence[Threshold]:
    """Returns the thresholds of a test by metric. Four queries, none without metrics.

    `worse_percent` replaces the percentage of the pool, which replaces that of each metric; 0 replaces none.
    """
    test = NODE_TESTS.get(row.test)
    judged = [metric for metric in test.metrics if metric.worse_percent] if test else []
    node = Node.objects.filter(uid=row.node_uid).first() if judged else None
    if node is not None and not worse_percent:
        worse_percent = tests_of([node])[node.pk].worse_percent
    metrics = [replace(metric, worse_percent=worse_percent or metric.worse_percent) for metric in judged]
    if test is None or not metrics or not test.is_run_by(row.command):
        return []
    passes = _passes(row, test, node, now=now)
    return [
        _threshold(metric, [its[metric.path] for its in passes if metric.path in its and not metric.is_thin(its)])
        for metric in metrics
    ]


def _threshold(metric: TestMetric, values: Sequence[float]) -> Threshold:
    if len(values) < FEWEST:
        return Threshold(metric, None, len(values))
    middle, part = median(values), metric.worse_percent / 100
    limit = middle * (1 + part) if metric.is_lower_better else middle * (1 - part)
    return Threshold(metric, limit, len(values))


def _passes(row: TestJobOnNode, test: NodeTest, node: Node | None, *, now: datetime) -> list[Mapping[str, float]]:
    """Returns the numbers of the newest pass of each other node of the pools, on the same GPUs."""
    if node is None or not row.gpu_product:
        return []
    members = Pool.nodes.through.objects.filter(pool__in=Pool.objects.filter(nodes=node)).values("node__uid")
    newest: dict[str, tuple[datetime, Mapping[str, float]]] = {}
    for table in RESULT_TABLES:
        rows = table.objects.filter(
            test=test.key, outcome=TestJobOutcome.PASSED, gpu_product=row.gpu_product, amount=row.amount,
            numbers__isnull=False, told_at__gt=now - RECENT, node_uid__in=members,
        ).exclude(node_uid=row.node_uid)  # fmt: skip
        for uid, at, numbers in rows.order_by("-told_at").values_list("node_uid", "told_at", "numbers")[:MOST_ROWS]:
            if uid not in newest or newest[uid][0] < at:
                newest[uid] = (at, numbers)
    return [numbers for _, numbers in newest.values()]
