"""Measurements of a service at the Prometheus of its cluster, within bounds that a round can wait for."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import PodPlacement
from health.models import TelemetrySource
from health.sources.addresses import address_of
from health.sources.secrets import NoSecret
from health.telemetry.prometheus.answers import LabelledSample, Unusable, labels
from health.telemetry.prometheus.client import Bounds, Client
from health.telemetry.service_levels.definition import ServiceLevelDefinition
from health.telemetry.service_levels.expression import (
    CLUSTERS,
    NEWEST,
    PART,
    SAMPLES,
    VALUE,
    Expression,
    ServiceScope,
    measurement,
)
from wording.numbers import count

# short, so that a halt of a plan does not wait for it
BOUNDS = Bounds(connect_s=1.0, read_s=2.0, answer_s=2.5, answer_bytes=1 << 20)
MOST_NAMES = 2000  # nodes or pods in one question


class NotMeasured(Exception):
    """A question without a usable answer. `cause` is stable; the sentence gives the reason."""

    def __init__(self, cause: str, sentence: str) -> None:
        super().__init__(sentence)
        self.cause = cause


@dataclass(frozen=True)
class Measured:
    value: float | None  # None: no series, or no finite number
    samples: float  # 0: none
    newest_at: float | None  # in seconds since the epoch by our clock; None: no sample


def source_of(cluster_id: int) -> TelemetrySource:
    """Returns the Prometheus of the cluster.

    :raises NotMeasured: when it has none that is switched on
    """
    source = TelemetrySource.objects.select_related("cluster").filter(cluster=cluster_id, is_on=True).first()
    if source is None:
        raise NotMeasured("no-source", "The cluster has no Prometheus as telemetry source.")
    return source


def measure(
    source: TelemetrySource, value: Expression, samples: Expression | None, scope: ServiceScope, *, at: float
) -> Measured:
    """Returns one measurement by one query. `at` is in seconds since the epoch by our clock.

    :raises NotMeasured: when the source does not answer in time, or with anything but one number
    """
    placeholders = value.placeholders | (samples.placeholders if samples else frozenset())
    for name, names in (("node", scope.nodes), ("pod", scope.pods)):
        if f"{name}s" in placeholders and not names:
            raise NotMeasured("no-pods", f"No GPU {name} ran on these nodes in the window.")
    try:
        with Client(address_of(source), BOUNDS) as client:
            series = client.query(measurement(value, samples, scope), at=at - source.clock_offset_s)
            parts = [(labels(each).get(PART, ""), each) for each in series]
    except (Unusable, NoSecret) as error:
        raise NotMeasured("source-silent", str(error)) from error
    return _measured(parts, source.clock_offset_s)


def measure_nodes(
    source: TelemetrySource,
    level: ServiceLevelDefinition,
    names: Collection[str],
    *,
    until: datetime,
    window: timedelta,
    among: Collection[str] | None = None,
) -> Measured:
    """Returns the measurement of these nodes, and of the GPU pods that ran on them in the window.

    `among` are the names of the pods that count. None: all.

    :raises NotMeasured: as `measure` does, and when there are too many names
    """
    pods = _pods(source.cluster_id, names, since=until - window, until=until)
    pods = pods if among is None else [name for name in pods if name in among]
    if max(len(names), len(pods)) > MOST_NAMES:
        raise NotMeasured("many-names", f"At most {MOST_NAMES} nodes or pods fit into one query.")
    scope = ServiceScope(names, pods, window.total_seconds(), source.matchers)
    return measure(source, level.value_expression, level.samples_expression, scope, at=until.timestamp())


def _pods(cluster_id: int, names: Collection[str], *, since: datetime, until: datetime) -> list[str]:
    """Returns the GPU pods that ran on these nodes in the window."""
    rows = PodPlacement.objects.filter(cluster=cluster_id, node_name__in=names, since__lt=until)
    rows = rows.filter(Q(until=None) | Q(until__gt=since))
    return sorted(set(rows.order_by().values_list("name", flat=True)))


def _measured(parts: list[tuple[str, LabelledSample]], clock_offset_s: float) -> Measured:
    def numbers(part: str) -> list[float]:
        return [each.value.value for name, each in parts if name.startswith(part) and math.isfinite(each.value.value)]

    values = [each for name, each in parts if name == VALUE]
    if len(values) > 1:
        raise NotMeasured(
            "many-series",
            f"The query returns {count(len(values), 'series', 'series')}. Aggregate them, as in sum(…) or max(…).",
        )
    if (clusters := max(numbers(CLUSTERS), default=1)) > 1:
        raise NotMeasured(
            "other-clusters",
            f"This Prometheus has series of {clusters:.0f} clusters. Add matchers of this cluster to the source.",
        )
    newest_at = min(numbers(NEWEST), default=None)
    return Measured(
        value=next(iter(numbers(VALUE)), None),
        samples=min(numbers(SAMPLES), default=0.0),
        newest_at=None if newest_at is None else newest_at + clock_offset_s,
    )
