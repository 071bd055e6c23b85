"""Creation, change and deletion of pools. Each is recorded as a decision."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, router, transaction
from django.db.models import ProtectedError
from django.db.models.deletion import Collector

from edges import concurrent_edits
from fleet.allocation.counters import count_written_nodes
from fleet.models import Cluster, Observer, Pool
from fleet.models.pool import CLASS_PLACEMENTS
from fleet.places import pool_place
from fleet.pools import approval_rules
from fleet.pools.membership_writes import remove_nodes, sort_pools
from people.models import AuditEntry, RoleBinding
from people.models.user import ScopeKind
from people.roster.accounts import end_role
from wording.numbers import either

POOL_DELETED = "The pool was deleted."
WRITTEN = (
    "name", "selector", "environment", "workload_class", "approval", "max_unavailable", "price_per_gpu_hour",
    "placement_policy", *CLASS_PLACEMENTS.values(), "spread_label", "test_images", "test_claim_template",
    "test_worse_percent",
)  # fmt: skip


@dataclass(frozen=True)
class GoesWithPool:
    """Data of an app above that is deleted with a pool."""

    describe: Callable[[Pool, datetime], Iterable[str]]  # a sentence each
    end: Callable[[Pool, str, datetime], None]  # called with the actor; each writes its own audit entry


# Called after a change, in its transaction, with the earlier values of the changed fields, the actor and the time.
CHANGED: list[Callable[[Pool, Mapping[str, Any], str, datetime], None]] = []
GOES_WITH: list[GoesWithPool] = []  # each app registers its own in `AppConfig.ready`


class PoolTaken(Exception):
    """The cluster has a pool of this name."""


class PoolGone(Exception):
    """Somebody deleted the pool meanwhile."""


class PoolInUse(Exception):
    """A plan or a freeze references the pool, and must stay readable."""


def create_pool(*, cluster: Cluster, actor: str, now: datetime, **fields: Any) -> Pool:
    """Creates a pool with its nodes.

    :raises PoolTaken: when another pool has the name
    :raises ProductionAsks: when the approval rules contradict
    """
    pool = write_new(cluster=cluster, actor=actor, now=now, **fields)
    settle(cluster, [pool], actor=actor, now=now)
    return pool


def change_pool(pool: Pool, *, actor: str, now: datetime, was: str = "", **fields: Any) -> Pool:
    """Changes a pool and its nodes. `was` is the `mark_of` a complete form; blank: unnamed fields stay.

    :raises PoolTaken: when another pool has the new name
    :raises PoolGone, LostRace, ProductionAsks: as their names say
    """
    pool = write_change(pool, actor=actor, now=now, was=was, **fields)
    if "selector" in fields:
        settle(pool.cluster, [pool], actor=actor, now=now)
    return pool


def write_new(*, cluster: Cluster, actor: str, now: datetime, **fields: Any) -> Pool:
    """Creates a pool, unsorted: call `settle` after the transaction. Raises as `create_pool` does."""
    with transaction.atomic():
        approval_rules.lock_first(cluster)
        pool = _write(Pool(cluster=cluster), fields)
        _record_in_audit(pool, "pool.create", actor=actor, now=now, evidence=fields)
        approval_rules.announce_rules(cluster, actor=actor, now=now)
    return pool


def write_change(pool: Pool, *, actor: str, now: datetime, was: str = "", **fields: Any) -> Pool:
    """Changes a pool. If `selector` is given, call `settle` after the transaction. Raises as `change_pool` does."""
    with transaction.atomic():
        pool = locked(pool)
        concurrent_edits.refuse_unseen(pool, WRITTEN, was=was, to=fields)
        approval_rules.lock_first(pool.cluster)
        before = {name: getattr(pool, name) for name in fields}
        pool = _write(pool, fields)
        _record_in_audit(pool, "pool.change", actor=actor, now=now, evidence={"before": before, "after": fields})
        for each in CHANGED:
            each(pool, before, actor, now)
        approval_rules.announce_rules(pool.cluster, actor=actor, now=now)
    return pool


def settle(cluster: Cluster, pools: Sequence[Pool], *, actor: str, now: datetime) -> None:
    """Sorts the nodes of changed pools, so that a page need not wait for the observer. Approvals may follow."""
    if sort_pools(cluster, pools):
        with transaction.atomic():
            approval_rules.lock_first(cluster)
            approval_rules.announce_rules(cluster, actor=actor, now=now)


def mark_of(pool: Pool) -> str:
    """Returns the mark of a pool's editable fields."""
    return concurrent_edits.mark_of(pool, WRITTEN)


def delete_pool(pool: Pool, *, actor: str, now: datetime, was: str = "") -> None:
    """Deletes a pool with its nodes' membership, its roles and the data of apps above.

    :raises PoolInUse: when a plan references it
    :raises PoolGone: when it is deleted already
    :raises LostRace: when it changed since the mark `was`
    """
    with emptied([pool], actor=actor, now=now):
        write_deletion(pool, actor=actor, now=now, was=was)


@contextmanager
def emptied(pools: Sequence[Pool], *, actor: str, now: datetime) -> Iterator[None]:
    """Removes the nodes of pools before a block deletes them. The nodes return if the block fails.

    :raises PoolInUse: when a plan references one of them
    """
    if reasons := [reason for pool in pools if (reason := in_use(pool))]:
        raise PoolInUse(" ".join(reasons))
    try:
        for pool in pools:
            remove_nodes(pool)
        yield
    except Exception:
        for pool in pools:
            settle(pool.cluster, [pool], actor=actor, now=now)
        raise


def write_deletion(pool: Pool, *, actor: str, now: datetime, was: str = "") -> None:
    """Deletes a pool inside `emptied`. Raises as `delete_pool` does."""
    with transaction.atomic():
        pool = locked(pool)
        concurrent_edits.refuse_unseen(pool, WRITTEN, was=was, to={})
        evidence = {name: getattr(pool, name) for name in WRITTEN} | {"with_it": going_with(pool, now=now)}
        _record_in_audit(pool, "pool.delete", actor=actor, now=now, evidence=evidence)
        for binding in RoleBinding.objects.filter(scope=ScopeKind.POOL, scope_id=pool.pk).select_related("user"):
            end_role(binding, pool_place(pool), actor=actor, now=now)
        for each in GOES_WITH:
            each.end(pool, actor, now)
        Observer.lock(pool.cluster_id)  # a concurrent flush may be adding a node
        try:
            with count_written_nodes(pool.cluster_id, pool.nodes.values_list("pk", flat=True)):
                pool.delete()
            approval_rules.announce_to_pages(pool.cluster_id, now=now)
        except ProtectedError as error:
            raise PoolInUse(_reference_sentence(pool, error)) from error


def going_with(pool: Pool, *, now: datetime) -> Sequence[str]:
    """Returns what else is deleted with it, besides roles, as sentences."""
    return [sentence for each in GOES_WITH for sentence in each.describe(pool, now)]


def in_use(pool: Pool) -> str:
    """Returns why the pool cannot be deleted; blank: it can."""
    try:
        Collector(using=router.db_for_write(Pool)).collect([pool])
    except ProtectedError as error:
        return _reference_sentence(pool, error)
    return ""


def locked(pool: Pool) -> Pool:
    """Locks the pool until the end of the transaction; before plans and the cluster, as everywhere.

    :raises PoolGone: when it is deleted
    """
    found = Pool.objects.select_for_update(no_key=True).filter(pk=pool.pk).first()
    if found is None:
        raise PoolGone(f"Somebody has deleted pool {pool.name} since you read it.")
    return found


def _reference_sentence(pool: Pool, error: ProtectedError) -> str:
    """Returns a sentence with the kinds of objects that reference it."""
    kinds = sorted({str(each._meta.verbose_name) for each in error.protected_objects})  # noqa: SLF001 - Django's own
    named_by = f"A {' and a '.join(kinds)} {either(len(kinds), 'names', 'name')}"
    return f"{named_by} pool {pool.name}. A pool with a history stays."


def _write(pool: Pool, fields: dict[str, Any]) -> Pool:
    for name, value in fields.items():
        setattr(pool, name, value)
    pool.is_sorted = pool.is_sorted and "selector" not in fields
    approval_rules.refuse_contradiction(pool.cluster, pool)
    try:
        with transaction.atomic():
            pool.save()
    except IntegrityError as error:
        raise PoolTaken(f"Cluster {pool.cluster.name} already has a pool {pool.name}.") from error
    return pool


def _record_in_audit(pool: Pool, verb: str, *, actor: str, now: datetime, evidence: dict[str, Any]) -> None:
    AuditEntry.record(f"pool:{pool.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
