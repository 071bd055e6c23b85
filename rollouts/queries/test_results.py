"""Results of test Jobs as a series: of one node for its page, and as the baseline of a gate."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from fleet.models import Node
from operations.models import NodeTestJob
from operations.models.test_job import TestJobOnNode
from operations.test_jobs.node_tests import NODE_TESTS, is_of_samples
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import MetricResult
from rollouts.models import Plan, TestJob
from rollouts.queries.plot_values import Point

SHOWN = 20  # on the page of a node
MOST_POINTS = 500  # of the series of a node
BASELINE_AGE = timedelta(days=180)
MOST_RESULTS = 5000  # that a baseline reads, the newest first
TestJobKind = tuple[str, str, str, int]  # image, command, GPU product, GPUs: only equal ones are compared


@dataclass(frozen=True)
class Baselines:
    """Numbers with another driver than the plan's, the newest first, by the kind of their Job and by node."""

    by_kind: Mapping[TestJobKind, Mapping[str, Sequence[Mapping[str, float]]]] = field(default_factory=dict)

    def of(self, row: TestJob) -> Mapping[str, MetricResult]:
        """Returns each number of the Job with earlier ones of the node, and the newest of each other node."""
        found = self.by_kind.get(_kind(row), {})
        return {path: MetricResult(value, *_earlier(found, row.node_uid, path)) for path, value in row.printed.items()}


def _earlier(
    found: Mapping[str, Sequence[Mapping[str, float]]], node_uid: str, path: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    numbers = {uid: tuple(each[path] for each in rows if path in each) for uid, rows in found.items()}
    peers = tuple(values[0] for uid, values in numbers.items() if uid != node_uid and values)
    return numbers.get(node_uid, ()), peers


def baselines_of(plan: Plan, rows: Iterable[TestJob]) -> Baselines:
    """Returns the baselines for these Jobs of a plan: earlier Jobs of plans, and tests of operations.

    Two queries, none without a Job that printed a number.
    """
    kinds = {_kind(row) for row in rows if row.printed}
    if not kinds:
        return Baselines()
    like = {
        "outcome": TestJobOutcome.PASSED, "image__in": {kind[0] for kind in kinds},
        "told_at__gte": _newest(plan) - BASELINE_AGE,
    }  # fmt: skip
    of_plans = with_result().filter(plan__cluster=plan.cluster_id, **like)
    of_operations = NodeTestJob.objects.filter(operation__cluster=plan.cluster_id, numbers__isnull=False, **like)
    earlier = [row for rows in (of_plans, of_operations) for row in _newest_rows(rows, plan)]
    found: dict[TestJobKind, dict[str, list[Mapping[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(earlier, key=_ended_at, reverse=True):
        if (kind := _kind(row)) in kinds:
            found[kind][row.node_uid].append(_compared(row))
    return Baselines(found)


def _compared(row: TestJobOnNode) -> Mapping[str, float]:
    """Returns the numbers of an earlier Job without those that rest on too few samples."""
    metrics = NODE_TESTS[row.test].metrics if row.test in NODE_TESTS else ()
    thin = {metric.path for metric in metrics if metric.is_thin(row.printed)}
    return {path: value for path, value in row.printed.items() if path not in thin}


def _newest_rows(rows: QuerySet[Any], plan: Plan) -> QuerySet[Any]:
    return rows.exclude(driver_version__in=("", plan.to_version)).order_by("-told_at", "-pk")[:MOST_RESULTS]


def with_result() -> QuerySet[TestJob]:
    printed = Q(value__isnull=False) | Q(numbers__isnull=False)
    return TestJob.objects.filter(printed, outcome=TestJobOutcome.PASSED)


@dataclass(frozen=True)
class ResultSeries:
    """The numbers of one metric of equal Jobs on a node."""

    title: str
    test: str
    unit: str
    amount: int  # GPUs of each Job
    points: Sequence[Point]  # named by driver, the oldest first
    limits: Sequence[tuple[str, float]] = ()
    baseline: Sequence[float] = ()
    changes: Sequence[datetime] = ()


def series_of(node: Node, *, gpu_uuid: str = "") -> list[ResultSeries]:
    """Returns a series for each kind of Job and metric, also of operations, those with the newest result first.

    `gpu_uuid`: only Jobs that are known to have had this GPU. Two queries.
    """
    of_plans = with_result().filter(plan__cluster=node.cluster_id, node_uid=node.uid)
    of_operations = NodeTestJob.objects.filter(
        operation__cluster=node.cluster_id, node_uid=node.uid, outcome=TestJobOutcome.PASSED, numbers__isnull=False
    )
    rows = [row for rows in (of_plans, of_operations) for row in rows.order_by("-told_at", "-pk")[:MOST_POINTS]]
    found: dict[tuple[TestJobKind, str, str], list[Point]] = defaultdict(list)
    for row in sorted(rows, key=_ended_at):
        for path, value in row.printed.items() if not gpu_uuid or gpu_uuid in (row.gpu_uuids or ()) else ():
            if not is_of_samples(row.test, path):
                found[_kind(row), row.test, path].append(Point(_ended_at(row), value, row.driver_version or "unknown"))
    series = [_series(kind, test, path, points) for (kind, test, path), points in found.items()]
    return sorted(series, key=lambda each: each.points[-1].at, reverse=True)


def _series(kind: TestJobKind, key: str, path: str, points: Sequence[Point]) -> ResultSeries:
    test = NODE_TESTS.get(key)
    metric = next((each for each in test.metrics if each.path == path), None) if test else None
    title, unit = (metric.title, metric.unit) if metric else (path, "")
    return ResultSeries(title, test.title if test else kind[0], unit, kind[-1], points)


def results_of(node: Node) -> QuerySet[TestJob]:
    """Returns the test Jobs of a node that are over, the newest first."""
    rows = TestJob.objects.filter(plan__cluster=node.cluster_id, node_uid=node.uid).exclude(outcome="")
    return rows.select_related("plan").order_by("-told_at", "-pk")


def _ended_at(row: TestJobOnNode) -> datetime:
    return row.told_at or row.intended_at


def _newest(plan: Plan) -> datetime:
    return plan.sealed_at or plan.state_since


def _kind(row: TestJobOnNode) -> TestJobKind:
    return row.image, row.command, row.gpu_product, row.amount
