"""Results of test Jobs as a series: of one node for its page, and as the baseline of a gate."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import QuerySet

from fleet.models import Node
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.models import Plan, TestJob

SHOWN = 20  # on the page of a node
BASELINE_AGE = timedelta(days=180)
MOST_RESULTS = 5000  # that a baseline reads, the newest first
TestJobKind = tuple[str, str, str, str, int]  # metric, image, command, GPU product, GPUs: only equal ones are compared


@dataclass(frozen=True)
class Baselines:
    """Results with another driver than the plan's, the newest first, by the kind of their Job and by node."""

    by_kind: Mapping[TestJobKind, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)

    def of(self, row: TestJob) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Returns the results of the node, and the newest result of each other node."""
        found = self.by_kind.get(_kind(row), {})
        peers = tuple(values[0] for uid, values in found.items() if uid != row.node_uid)
        return found.get(row.node_uid, ()), peers


def baselines_of(plan: Plan, rows: Iterable[TestJob]) -> Baselines:
    """Returns the baselines for these Jobs of a plan. One query, none without a Job that printed a number."""
    kinds = {_kind(row) for row in rows if row.value is not None}
    if not kinds:
        return Baselines()
    since = _newest(plan) - BASELINE_AGE
    others = with_result().filter(
        plan__cluster=plan.cluster_id, metric__in={kind[0] for kind in kinds}, told_at__gte=since
    )
    found: dict[TestJobKind, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in others.exclude(driver_version__in=("", plan.to_version)).order_by("-told_at", "-pk")[:MOST_RESULTS]:
        if (kind := _kind(row)) in kinds and row.value is not None:
            found[kind][row.node_uid].append(row.value)
    return Baselines({kind: {uid: tuple(values) for uid, values in by.items()} for kind, by in found.items()})


def with_result() -> QuerySet[TestJob]:
    return TestJob.objects.filter(outcome=TestJobOutcome.PASSED, value__isnull=False)


def results_of(node: Node) -> QuerySet[TestJob]:
    """Returns the test Jobs of a node that are over, the newest first."""
    rows = TestJob.objects.filter(plan__cluster=node.cluster_id, node_uid=node.uid).exclude(outcome="")
    return rows.select_related("plan").order_by("-told_at", "-pk")


def _newest(plan: Plan) -> datetime:
    return plan.sealed_at or plan.state_since


def _kind(row: TestJob) -> TestJobKind:
    return row.metric, row.image, row.command, row.gpu_product, row.amount
