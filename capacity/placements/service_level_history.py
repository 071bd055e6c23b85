"""The service level of pools on full and on other nodes: measured once for each hour, and compared over days.

A task of its own measures: a slow Prometheus delays no round of telemetry. The row of the hour says that it is done.

A comparison needs hours in which both were measured from enough samples. The level of one hour depends on its traffic,
so only the two values of the same hour are compared; the medians are of these hours alone.

Each workload class is measured by its own pods: the p99 of notebooks hides that of a service, and the other way round.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from capacity.models import PoolServiceLevel, ServiceLevelHour
from capacity.placements.full_nodes import nodes_by_fullness
from capacity.placements.pod_classes import class_of
from capacity.placements.service_level_changes import FIELDS, WINDOW
from fleet.models import Node, PodPlacement, Pool
from fleet.models.node import members_of
from fleet.models.pool import WorkloadClass
from fleet.pools.changes import PoolGone, locked
from fleet.retention import delete
from health.models import TelemetrySource
from health.sources import usage
from health.sources.intervals import take_due_turn
from health.sources.service_levels import Measured, NotMeasured, measure_nodes, source_of
from health.telemetry.service_levels.definition import ServiceLevelDefinition

log = structlog.get_logger(__name__)
DAYS = 7
HOURS_AT_LEAST = 12  # with both values. Ours
CLASSES_HOLD = 0.9  # of the samples of their pool, and it is judged by them alone. Ours
SAMPLES_AT_LEAST = 20  # of each value, as the default of the gate on a service level
CURRENT_FOR = timedelta(hours=3)  # after the newest hour with a value. Ours
TURN = timedelta(seconds=50)  # of one cluster; longer than a task measures, with its last pool
MEASURES_FOR = timedelta(seconds=25)  # then the other pools wait for the next turn
NOTHING = Measured(None, 0.0, None)
VALUES = ("full_value", "full_samples", "other_value", "other_samples", "trouble")
CLASSES_MEASURED = (WorkloadClass.INFERENCE, WorkloadClass.TRAINING, WorkloadClass.DEVELOPMENT)
OF_NODES = "The expression selects nodes, not pods."


@dataclass(frozen=True)
class ServiceLevelComparison:
    """The service level on full and on other nodes."""

    title: str
    unit: str  # blank: a ratio, or unknown
    is_higher_better: bool
    full: float | None  # median of the compared hours; None: too few hours
    other: float | None
    hours: int  # with enough samples on full and on other nodes
    measured: int  # hours that were measured at all
    trouble: str  # of the newest hour; blank: none
    newest: datetime | None = None  # end of the newest hour with a value
    is_current: bool = False  # False: how it is now is unknown
    samples: float = 0  # of all measured hours
    workload_class: str = ""  # of its pods; blank: all pods of the pool
    classes: Sequence["ServiceLevelComparison"] = ()  # of the pool: one for each class

    @property
    def judged(self) -> Sequence["ServiceLevelComparison"]:
        """Returns the comparisons by which the pool is judged: those of its classes, where several are current.

        If other pods have many of the samples, the pool itself is judged too.
        """
        compared = [each for each in self.classes if each.full is not None and each.is_current]
        if len(compared) < 2:
            return [self]
        is_nearly_all = sum(each.samples for each in compared) >= CLASSES_HOLD * self.samples
        return compared if is_nearly_all else [self, *compared]

    @property
    def why_not(self) -> str:
        """Returns why there is no comparison. Blank: there is one."""
        if self.full is not None:
            return ""
        if not self.measured:
            return "no such pods in a measured hour"
        if self.newest is None:
            return self.trouble or "no source exports it for these pods"
        return f"{self.hours} of {HOURS_AT_LEAST} hours have {SAMPLES_AT_LEAST} samples on full and on other nodes"

    @property
    def percent_worse(self) -> float | None:
        """Returns how much worse full nodes are, negative if better. None: unknown."""
        if self.full is None or not self.other:
            return None
        change = 100 * (self.full - self.other) / abs(self.other)
        return -change if self.is_higher_better else change

    @property
    def text(self) -> str:
        """Returns "0.4 s on full nodes, 0.2 s on others (100 % worse on full nodes)". Blank: not compared."""
        if self.full is None or self.other is None:
            return ""
        values = [f"{value:.3g} {self.unit}".rstrip() for value in (self.full, self.other)]
        percent = self.percent_worse
        words = "worse" if percent and percent > 0 else "better"
        change = "" if percent is None else f" ({abs(percent):.0f} % {words} on full nodes)"
        return f"{values[0]} on full nodes, {values[1]} on others{change}"


def due_clusters(*, now: datetime) -> list[int]:
    """Returns the clusters with a pool whose last hour is not measured. One query."""
    return sorted(set(_unmeasured(_last_hour(now)).values_list("pool__cluster", flat=True)))


def measure_due(cluster_id: int, *, clock: Callable[[], datetime]) -> None:
    """Measures the last hour of each pool that has a service level, once its GPU-hours are recorded.

    One worker measures a cluster at a time. What it does not reach in its turn is due in the next one.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    now = clock()
    hour = _last_hour(now)
    if not usage.is_recorded(cluster_id, hour):
        return
    if not take_due_turn(cluster_id, "service-levels", every=TURN, now=now):
        return
    for level in _unmeasured(hour).filter(pool__cluster=cluster_id).select_related("pool").order_by("pk"):
        if clock() - now >= MEASURES_FOR:
            break
        try:
            measure(level, hour)
        except Exception:  # whatever it is, the other pools are measured, and the next turn repeats this one
            log.exception("the service level of a pool is not measured", pool=level.pool_id)


def _last_hour(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0) - WINDOW


def _unmeasured(hour: datetime) -> QuerySet[PoolServiceLevel]:
    measured = ServiceLevelHour.objects.filter(pool=OuterRef("pool"), hour=hour + WINDOW)
    return PoolServiceLevel.objects.filter(~Exists(measured))


def measure(level: PoolServiceLevel, hour: datetime) -> None:
    """Measures one hour of a pool: two questions to the Prometheus, of 2.5 s at most each.

    Two more for each class, where pods of several classes ran.
    """
    cluster_id = level.pool.cluster_id
    nodes = Node.objects.filter(cluster=cluster_id, pk__in=members_of([level.pool_id])).with_gpus()
    groups = nodes_by_fullness(cluster_id, list(nodes.values_list("name", flat=True)), hour)
    values = _values(level, groups, hour)
    if not values["trouble"]:
        values["classes"] = _values_of_classes(level, groups, hour, every=values)
    asked = {name: getattr(level, name) for name in FIELDS}
    try:
        with transaction.atomic():
            pool = locked(level.pool)
            if PoolServiceLevel.objects.filter(pool=pool, **asked).exists():  # nobody chose another one meanwhile
                ServiceLevelHour.objects.update_or_create(pool=pool, hour=hour + WINDOW, defaults=values)
    except PoolGone:  # with its hours
        return


def _values(
    level: PoolServiceLevel, groups: Sequence[Sequence[str]], hour: datetime, among: Collection[str] | None = None
) -> dict[str, Any]:
    """Returns what was measured on full and on other nodes. `among` are the pods that count; None: all."""
    found, trouble = [NOTHING, NOTHING], ""
    try:
        source = source_of(level.pool.cluster_id)
        found = [_measured(source, level.definition, names, until=hour + WINDOW, among=among) for names in groups]
    except (NotMeasured, ValueError) as problem:
        trouble = str(problem)[:200]
    return {
        "full_value": found[0].value, "full_samples": found[0].samples,
        "other_value": found[1].value, "other_samples": found[1].samples,
        "trouble": trouble,
    }  # fmt: skip


def _values_of_classes(
    level: PoolServiceLevel, groups: Sequence[Sequence[str]], hour: datetime, *, every: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Returns what was measured of the pods of each class. Pods of unknown owners are in none. One query.

    `every` are the values of all pods: those of the class, where only one class ran.
    """
    pods = _pods_by_class(level.pool.cluster_id, [name for names in groups for name in names], hour)
    classes = [its_class for its_class in pods if its_class is not None]
    if len(pods) == 1:
        return {its_class: dict(every) for its_class in classes}
    if any("pods" not in each.placeholders for each in level.definition.expressions):
        return {its_class: _nothing(OF_NODES) for its_class in classes}
    return {its_class: _values(level, groups, hour, among=pods[its_class]) for its_class in classes}


def _nothing(trouble: str) -> dict[str, Any]:
    return {"full_value": None, "full_samples": 0, "other_value": None, "other_samples": 0, "trouble": trouble}


def _pods_by_class(cluster_id: int, names: Sequence[str], hour: datetime) -> dict[WorkloadClass | None, set[str]]:
    """Returns the names of the GPU pods that ran on these nodes in the hour. None: of an unknown class."""
    rows = PodPlacement.objects.filter(cluster=cluster_id, node_name__in=names, since__lt=hour + WINDOW)
    rows = rows.filter(Q(until=None) | Q(until__gt=hour)).order_by()
    found: dict[WorkloadClass | None, set[str]] = defaultdict(set)
    for name, top, kind in rows.values_list("name", "top_owner", "owner_kind").distinct():
        found[class_of([top.partition("/")[0], kind] if top else [kind])].add(name)
    return found


def _measured(
    source: TelemetrySource,
    definition: ServiceLevelDefinition,
    names: Sequence[str],
    *,
    until: datetime,
    among: Collection[str] | None,
) -> Measured:
    try:
        return measure_nodes(source, definition, names, until=until, window=WINDOW, among=among) if names else NOTHING
    except NotMeasured as problem:
        if problem.cause == "no-pods":
            return NOTHING
        raise


def recent_hours(pool: Pool, *, now: datetime) -> list[ServiceLevelHour]:
    """Returns the hours of the last days, the oldest first. One query."""
    return list(ServiceLevelHour.objects.filter(pool=pool, hour__gt=now - timedelta(days=DAYS)).order_by("hour"))


def service_level_of_pool(pool: Pool, *, now: datetime) -> ServiceLevelComparison | None:
    """Returns the comparison of the last days. None: the pool has no service level. Two queries."""
    level = PoolServiceLevel.objects.filter(pool=pool).first()
    if level is None:
        return None
    rows = recent_hours(pool, now=now)
    try:
        definition = level.definition
    except ValueError as unknown:
        return ServiceLevelComparison(
            level.indicator,
            "",
            is_higher_better=False,
            full=None,
            other=None,
            hours=0,
            measured=len(rows),
            trouble=str(unknown),
        )
    every = [(row.hour, {name: getattr(row, name) for name in VALUES}) for row in rows]
    classes = [
        _compare(definition, [(row.hour, row.classes[each]) for row in rows if each in row.classes], each, now=now)
        for each in CLASSES_MEASURED
    ]
    return replace(_compare(definition, every, now=now), classes=classes)


def _compare(
    definition: ServiceLevelDefinition,
    hours: Sequence[tuple[datetime, Mapping[str, Any]]],
    workload_class: str = "",
    *,
    now: datetime,
) -> ServiceLevelComparison:
    """Compares `VALUES` of hours, the oldest first."""
    pairs = [
        (values["full_value"], values["other_value"])
        for _, values in hours
        if values["full_value"] is not None
        and values["other_value"] is not None
        and min(values["full_samples"], values["other_samples"]) >= SAMPLES_AT_LEAST
    ]
    is_enough = len(pairs) >= HOURS_AT_LEAST
    valued = [at for at, values in hours if values["full_value"] is not None or values["other_value"] is not None]
    newest = valued[-1] if valued else None
    return ServiceLevelComparison(
        definition.title,
        definition.unit,
        definition.is_higher_better,
        median(full for full, _ in pairs) if is_enough else None,
        median(other for _, other in pairs) if is_enough else None,
        len(pairs),
        len(hours),
        hours[-1][1]["trouble"] if hours else "",
        newest,
        is_current=newest is not None and now - newest <= CURRENT_FOR,
        samples=sum(values["full_samples"] + values["other_samples"] for _, values in hours),
        workload_class=workload_class,
    )


def tidy(*, now: datetime, **_: datetime) -> int:
    """Deletes hours as old as deleted hours of GPUs, and returns their number."""
    return delete(ServiceLevelHour.objects.filter(hour__lt=now - timedelta(days=settings.KEEP_GPU_HOURS_DAYS)))
