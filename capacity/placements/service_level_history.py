"""The service level of pools on full and on other nodes: measured once for each hour, and compared over days.

A task of its own measures: a slow Prometheus delays no round of telemetry. The row of the hour says that it is done.

A comparison needs hours in which both were measured from enough samples. The level of one hour depends on its traffic,
so only the two values of the same hour are compared; the medians are of these hours alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from capacity.models import PoolServiceLevel, ServiceLevelHour
from capacity.placements.full_nodes import nodes_by_fullness
from capacity.placements.service_level_changes import FIELDS, WINDOW
from fleet.models import Node, Pool
from fleet.models.node import members_of
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
SAMPLES_AT_LEAST = 20  # of each value, as the default of the gate on a service level
CURRENT_FOR = timedelta(hours=3)  # after the newest hour with a value. Ours
TURN = timedelta(seconds=50)  # of one cluster; longer than a task measures, with its last pool
MEASURES_FOR = timedelta(seconds=30)  # then the other pools wait for the next turn
NOTHING = Measured(None, 0.0, None)


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
    """Measures one hour of a pool: two questions to the Prometheus, of 2.5 s at most each."""
    cluster_id = level.pool.cluster_id
    nodes = Node.objects.filter(cluster=cluster_id, pk__in=members_of([level.pool_id])).with_gpus()
    groups = nodes_by_fullness(cluster_id, list(nodes.values_list("name", flat=True)), hour)
    found, trouble = [NOTHING, NOTHING], ""
    try:
        source = source_of(cluster_id)
        found = [_measured(source, level.definition, names, until=hour + WINDOW) for names in groups]
    except (NotMeasured, ValueError) as problem:
        trouble = str(problem)[:200]
    values = {
        "full_value": found[0].value, "full_samples": found[0].samples,
        "other_value": found[1].value, "other_samples": found[1].samples,
    }  # fmt: skip
    asked = {name: getattr(level, name) for name in FIELDS}
    try:
        with transaction.atomic():
            pool = locked(level.pool)
            if PoolServiceLevel.objects.filter(pool=pool, **asked).exists():  # nobody chose another one meanwhile
                ServiceLevelHour.objects.update_or_create(
                    pool=pool, hour=hour + WINDOW, defaults=values | {"trouble": trouble}
                )
    except PoolGone:  # with its hours
        return


def _measured(
    source: TelemetrySource, definition: ServiceLevelDefinition, names: Sequence[str], *, until: datetime
) -> Measured:
    try:
        return measure_nodes(source, definition, names, until=until, window=WINDOW) if names else NOTHING
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
    pairs = [
        (row.full_value, row.other_value)
        for row in rows
        if row.full_value is not None
        and row.other_value is not None
        and min(row.full_samples, row.other_samples) >= SAMPLES_AT_LEAST
    ]
    is_enough = len(pairs) >= HOURS_AT_LEAST
    valued = [row.hour for row in rows if row.full_value is not None or row.other_value is not None]
    newest = valued[-1] if valued else None
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
    return ServiceLevelComparison(
        definition.title,
        definition.unit,
        definition.is_higher_better,
        median(full for full, _ in pairs) if is_enough else None,
        median(other for _, other in pairs) if is_enough else None,
        len(pairs),
        len(rows),
        rows[-1].trouble if rows else "",
        newest,
        is_current=newest is not None and now - newest <= CURRENT_FOR,
    )


def tidy(*, now: datetime, **_: datetime) -> int:
    """Deletes hours as old as deleted hours of GPUs, and returns their number."""
    return delete(ServiceLevelHour.objects.filter(hour__lt=now - timedelta(days=settings.KEEP_GPU_HOURS_DAYS)))
