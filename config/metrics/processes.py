"""Our own processes and sweeps."""

from collections.abc import Iterator
from datetime import datetime
from time import perf_counter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from config.models import ProcessEnd, Sweep, WriteProbe


def families(now: datetime) -> Iterator[Metric]:  # noqa: ARG001 - each source takes the time
    yield _database()
    yield from _process_ends()
    yield from _sweeps()


def _database() -> Metric:
    began = perf_counter()
    WriteProbe.objects.first()
    text = "Time that one query of a single row took in this scrape."
    return GaugeMetricFamily("quarterdeck_database_query_seconds", text, value=perf_counter() - began)


def _process_ends() -> Iterator[Metric]:
    text = "Unexpected exits of our processes by cause."
    times = CounterMetricFamily("quarterdeck_process_ends", text, labels=["process", "cause"])
    text = "Time and host of the last unexpected exit by cause."
    labels = ["process", "cause", "host"]
    last = GaugeMetricFamily("quarterdeck_process_last_end_timestamp_seconds", text, labels=labels)
    for end in ProcessEnd.objects.all():
        times.add_metric([end.process, end.cause], end.times)
        last.add_metric([end.process, end.cause, end.last_host], end.last_at.timestamp())
    yield from (times, last)


def _sweeps() -> Iterator[Metric]:
    """Yields counts and times of sweeps; a sweep that never ran has none."""
    text = "Items found by sweeps: leases of crashed observers (leases), old rows (rows), altered decisions (audit)."
    items = CounterMetricFamily("quarterdeck_swept", text, labels=["what"])
    text = "Time of a sweep's last run, to the minute. Leases: every 10 s; rows: every hour; audit: every six hours."
    last = GaugeMetricFamily("quarterdeck_sweep_last_timestamp_seconds", text, labels=["what"])
    for sweep in Sweep.objects.all():
        items.add_metric([sweep.what], sweep.found)
        last.add_metric([sweep.what], sweep.last_at.timestamp())
    yield from (items, last)
