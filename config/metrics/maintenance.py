"""Cases of sick nodes, by cluster and state."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily, Metric

from maintenance.models import NodeCase


def families(now: datetime) -> Iterator[Metric]:  # noqa: ARG001 - each source takes the time
    text = "Open cases of sick nodes, by state."
    gauge = GaugeMetricFamily("quarterdeck_cases", text, labels=["cluster", "state"])
    cases = NodeCase.objects.open().order_by().values_list("cluster__name", "state")
    for *labels, number in cases.annotate(Count("pk")):
        gauge.add_metric(labels, number)
    yield gauge
