"""Chooses the service level of a pool, previews it, and removes it. Only a preview asks the Prometheus."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from capacity.models import PoolServiceLevel, ServiceLevelHour
from edges import concurrent_edits
from fleet.models import Node, Pool
from fleet.models.node import members_of
from fleet.pools.changes import locked
from health.sources.service_levels import Measured, NotMeasured, measure_nodes, source_of
from health.telemetry.service_levels.definition import ServiceLevelDefinition
from people.models import AuditEntry, User
from people.rights import Permission, why_not

WINDOW = timedelta(hours=1)  # of a preview and of each comparison
FIELDS = ("indicator", "expression", "samples", "unit", "is_higher_better")


@dataclass(frozen=True)
class ServiceLevelPreview:
    """The answer of the last hour for all nodes of the pool."""

    measured: Measured | None
    trouble: str  # why there is no answer; blank: there is one

    @property
    def value(self) -> str:
        return f"{self.measured.value:.4g}" if self.measured and self.measured.value is not None else ""


def may_choose(user: User, pool: Pool) -> str:
    """Returns why the user may not change the service level of the pool. Blank: they may."""
    where = f"pool {pool.cluster.name}/{pool.name}"
    return why_not(user, Permission.ADMINISTER, cluster_id=pool.cluster_id, pool_id=pool.pk, where=where)


def define(**given: Any) -> ServiceLevelDefinition:
    """Returns the definition of `FIELDS`.

    :raises ValueError: with a sentence that says what to write
    """
    row = PoolServiceLevel(**{name: given[name] for name in FIELDS})
    if not row.expression and (row.unit or row.is_higher_better):
        raise ValueError("unit and is_higher_better are only allowed with your own expression.")
    return row.definition


def preview_service_level(pool: Pool, definition: ServiceLevelDefinition, *, now: datetime) -> ServiceLevelPreview:
    """Asks the Prometheus of the cluster once, for at most 2.5 s."""
    nodes = Node.objects.filter(cluster=pool.cluster_id, pk__in=members_of([pool.pk])).with_gpus()
    names = list(nodes.order_by("name").values_list("name", flat=True))
    try:
        found = measure_nodes(source_of(pool.cluster_id), definition, names, until=now, window=WINDOW)
    except NotMeasured as problem:
        return ServiceLevelPreview(None, str(problem))
    trouble = "" if found.value is not None else "The query has no value: no request, or no such metric, in one hour."
    return ServiceLevelPreview(found, trouble)


def mark_of(row: PoolServiceLevel | None) -> str:
    return concurrent_edits.mark_of(row, FIELDS)


def put_service_level(pool: Pool, *, actor: str, now: datetime, was: str = "", **given: Any) -> PoolServiceLevel:
    """Saves the service level. Hours of another one are deleted, since they cannot be compared.

    `was` is the mark that was read; blank: nothing is compared.

    :raises ValueError: when the input is no definition
    :raises LostRace: when somebody changed it meanwhile
    :raises PoolGone: when the pool is deleted
    """
    define(**given)
    with transaction.atomic():
        before = PoolServiceLevel.objects.filter(pool=locked(pool)).first()
        concurrent_edits.refuse_unseen(before, FIELDS, was=was, to=given)
        row, _ = PoolServiceLevel.objects.update_or_create(pool=pool, defaults={**given, "by": actor, "at": now})
        if _evidence(before) != _evidence(row):
            ServiceLevelHour.objects.filter(pool=pool).delete()
        _record(pool, "pool.service_level.put", actor, now, before=_evidence(before), after=_evidence(row))
    return row


def remove_service_level(pool: Pool, *, actor: str, now: datetime, was: str = "") -> None:
    """Removes the service level and its hours. Nothing happens where there is none. Raises as `put_service_level`."""
    with transaction.atomic():
        before = PoolServiceLevel.objects.filter(pool=locked(pool)).first()
        concurrent_edits.refuse_unseen(before, FIELDS, was=was, to={})
        if before is not None:
            before.delete()
            ServiceLevelHour.objects.filter(pool=pool).delete()
            _record(pool, "pool.service_level.remove", actor, now, before=_evidence(before))


def _evidence(row: PoolServiceLevel | None) -> dict[str, Any]:
    return {name: getattr(row, name) for name in FIELDS} if row else {}


def _record(pool: Pool, verb: str, actor: str, now: datetime, **evidence: Any) -> None:
    AuditEntry.record(f"pool:{pool.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
