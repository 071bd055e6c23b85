"""Operations on nodes, and the nodes of those in progress."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from operations.lifecycle import IN_PROGRESS, NodeProgress, OperationState
from operations.models import Operation, OperationNode


def families(now: datetime) -> Iterator[Metric]:  # noqa: ARG001 - each source takes the time
    operations = GaugeMetricFamily("quarterdeck_operations", "Operations on nodes, by state.", labels=["state"])
    numbers = dict(Operation.objects.order_by().values_list("state").annotate(Count("pk")))
    for state in OperationState:
        operations.add_metric([state.value], numbers.get(state.value, 0))
    yield operations
    text = "Nodes of operations that are running or paused, by result."
    nodes = GaugeMetricFamily("quarterdeck_operation_nodes", text, labels=["state"])
    rows = OperationNode.objects.filter(operation__state__in=sorted(IN_PROGRESS)).order_by()
    numbers = dict(rows.values_list("state").annotate(Count("pk")))
    for progress in NodeProgress:
        nodes.add_metric([progress.value], numbers.get(progress.value, 0))
    yield nodes
