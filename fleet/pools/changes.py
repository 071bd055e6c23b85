"""Creation, change and deletion of pools. Each is recorded as a decision."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, router, transaction
from django.db.models import ProtectedError
from django.db.models.deletion import Collector

from edges import concurrent_edits
from fleet.allocation.counters import kept
from fleet.models import Cluster, Observer, Pool
from fleet.places import place_of
from fleet.pools import approval_rules
from fleet.pools.membership import claimed
from people.models import AuditEntry, RoleBinding
from people.models.user import ScopeKind
from people.roster.accounts import take
from wording.numbers import either

POOL_DELETED = "Its pool was deleted."
AT_ONCE = 500
WRITTEN = (
    "name", "selector", "environment", "workload_class", "approval", "max_unavailable", "price_per_gpu_hour",
)  # fmt: skip


@dataclass(frozen=True)
class GoesWithPool:
    """Data of an app above that is deleted with a pool."""

    describe: Callable[[Pool, datetime], Iterable[str]]  # a sentence each
    end: Callable[[Pool, str, datetime], None]  # called with the actor; each writes its own audit entry


GOES_WITH: list[GoesWithPool] = []  # each app registers its own in `AppConfig.ready`


class PoolTaken(Exception):
    """The cluster has a pool of this name."""


class PoolGone(Exception):
    """Somebody deleted the pool meanwhile."""


class PoolInUse(Exception):
    """A plan or a freeze references the pool, and must stay readable."""


def create_pool(*, cluster: Cluster, actor: str, now: datetime, **fields: Any) -> Pool:
    """Creates a pool.

    :raises PoolTaken: when another pool has the name
    :raises ProductionAsks: when the approval rules contradict
    """
    with transaction.atomic():
        approval_rules.lock_first(cluster)
        pool = _write(Pool(cluster=cluster), fields)
        _record(pool, "pool.create", actor=actor, now=now, evidence=fields)
        approval_rules.announce_rules(cluster, actor=actor, now=now)
    return pool


def change_pool(pool: Pool, *, actor: str, now: datetime, was: str = "", **fields: Any) -> Pool:
    """Changes a pool. `was` is the `mark_of` a complete form; blank: unnamed fields stay.

    :raises PoolTaken: when another pool has the new name
    :raises PoolGone, LostRace, ProductionAsks: as their names say
    """
    with transaction.atomic():
        pool = locked(pool)
        concurrent_edits.refuse_unseen(pool, WRITTEN, was=was, to=fields)
        approval_rules.lock_first(pool.cluster)
        before = {name: getattr(pool, name) for name in fields}
        pool = _write(pool, fields)
        _record(pool, "pool.change", actor=actor, now=now, evidence={"before": before, "after": fields})
        approval_rules.announce_rules(pool.cluster, actor=actor, now=now)
    return pool


def mark_of(pool: Pool) -> str:
    """Returns the mark of a pool's editable fields."""
    return concurrent_edits.mark_of(pool, WRITTEN)


def delete_pool(pool: Pool, *, actor: str, now: datetime) -> None:
    """Deletes a pool with its roles and the data of apps above.

    :raises PoolInUse: when a plan references it
    :raises PoolGone: when it is deleted already
    """
    with transaction.atomic():
        pool = locked(pool)
        was = {name: getattr(pool, name) for name in WRITTEN} | {"with_it": going_with(pool, now=now)}
        _record(pool, "pool.delete", actor=actor, now=now, evidence=was)
        for binding in RoleBinding.objects.filter(scope=ScopeKind.POOL, scope_id=pool.pk).select_related("user"):
            take(binding, place_of(pool), actor=actor, now=now)
        for each in GOES_WITH:
            each.end(pool, actor, now)
        Observer.lock(pool.cluster_id)  # a concurrent flush may be adding a node
        try:
            with kept(pool.cluster_id, pool.nodes.values_list("pk", flat=True)):
                pool.delete()
            approval_rules.announce_to_pages(pool.cluster_id, now=now)
        except ProtectedError as error:
            raise PoolInUse(_used(pool, error)) from error


def going_with(pool: Pool, *, now: datetime) -> Sequence[str]:
    """Returns what else is deleted with it, besides roles, as sentences."""
    return [sentence for each in GOES_WITH for sentence in each.describe(pool, now)]


def in_use(pool: Pool) -> str:
    """Returns why the pool cannot be deleted; blank: it can."""
    try:
        Collector(using=router.db_for_write(Pool)).collect([pool])
    except ProtectedError as error:
        return _used(pool, error)
    return ""


def locked(pool: Pool) -> Pool:
    """Locks the pool until the end of the transaction; before plans and the cluster, as everywhere.

    :raises PoolGone: when it is deleted
    """
    found = Pool.objects.select_for_update(no_key=True).filter(pk=pool.pk).first()
    if found is None:
        raise PoolGone(f"Somebody deleted pool {pool.name} since.")
    return found


def _used(pool: Pool, error: ProtectedError) -> str:
    """Returns a sentence with the kinds of objects that reference it."""
    kinds = sorted({str(each._meta.verbose_name) for each in error.protected_objects})  # noqa: SLF001 - Django's own
    named_by = f"A {' and a '.join(kinds)} {either(len(kinds), 'names', 'name')}"
    return f"{named_by} pool {pool.name}. A pool with a history stays."


def _write(pool: Pool, fields: dict[str, Any]) -> Pool:
    """Saves the pool with its nodes at once, so that a page need not wait for the observer."""
    for name, value in fields.items():
        setattr(pool, name, value)
    approval_rules.refuse_contradiction(pool.cluster, pool)
    try:
        with transaction.atomic():
            pool.save()
    except IntegrityError as error:
        raise PoolTaken(f"Cluster {pool.cluster.name} already has a pool {pool.name}.") from error
    if "selector" in fields:
        _settle(pool)
    return pool


def _settle(pool: Pool) -> None:
    through = Pool.nodes.through
    members = through.objects.filter(pool=pool)
    Observer.lock(pool.cluster_id)  # its membership is stable until written
    before = set(members.values_list("node_id", flat=True))
    after = claimed(pool.cluster, pool.selector, pool=pool)
    left = sorted(before - after)
    with kept(pool.cluster_id, before ^ after):
        through.objects.bulk_create((through(node_id=pk, pool=pool) for pk in after - before), ignore_conflicts=True)
        for start in range(0, len(left), AT_ONCE):
            members.filter(node_id__in=left[start : start + AT_ONCE]).delete()


def _record(pool: Pool, verb: str, *, actor: str, now: datetime, evidence: dict[str, Any]) -> None:
    AuditEntry.record(f"pool:{pool.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
