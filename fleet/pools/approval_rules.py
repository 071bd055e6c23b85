"""Rules for changes without approval: cluster and pool allow it with `approval: none`, and never in production."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from django.db import transaction

from edges import concurrent_edits
from fleet.messages import announce
from fleet.models import ApprovalRule, Cluster, Observer, Pool
from fleet.models.pool import PoolApproval
from people.models import AuditEntry

Lock = Callable[[Cluster], None]
LOCKS: list[Lock] = []  # of apps above: rows that their transactions lock before a cluster's
ApprovalListener = Callable[[Cluster, str, datetime], None]
LISTENERS: list[ApprovalListener] = []  # of apps above: notified, with the actor, when approvals may become necessary


WRITTEN = ("approval",)


class ProductionAsks(Exception):
    """The refusal of `approval: none` for production."""


def rule_of(cluster: Cluster, pool: Pool) -> str:
    return cluster.approval if pool.approval == PoolApproval.AS_CLUSTER else pool.approval


def why_approval_is_needed(cluster: Cluster, pools: Sequence[Pool]) -> str:
    """Returns why a node in these pools needs approval. Blank: it does not."""
    if production := [pool.name for pool in pools if pool.is_production]:
        return f"pool {production[0]} is production"
    if asking := [pool.name for pool in pools if rule_of(cluster, pool) != ApprovalRule.NONE]:
        return f"pool {asking[0]} does not have “approval: none”"
    if not pools and cluster.approval != ApprovalRule.NONE:
        return f"cluster {cluster.name} does not have “approval: none”"
    return ""


def contradiction(cluster: Cluster, pool: Pool) -> str:
    """Returns why a pool's settings contradict. Blank: they do not."""
    if not pool.is_production or rule_of(cluster, pool) != ApprovalRule.NONE:
        return ""
    if pool.approval == PoolApproval.NONE:
        return f"Pool {pool.name} is production and cannot have “approval: none”."
    return f"Pool {pool.name} is production, and {cluster.name} has “approval: none”. Set “required” for the pool."


def mark_of(cluster: Cluster) -> str:
    """Returns the mark of a cluster's rule."""
    return concurrent_edits.mark_of(cluster, WRITTEN)


def set_approval(cluster: Cluster, approval: str, *, actor: str, reason: str, now: datetime, was: str = "") -> None:
    """Sets the rule of a cluster.

    :raises ProductionAsks: with the pools that forbid it
    :raises LostRace: when it changed since the mark `was`
    """
    with transaction.atomic():
        lock_first(cluster)
        locked = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        concurrent_edits.refuse_unseen(locked, WRITTEN, was=was, to={"approval": approval})
        before, locked.approval = locked.approval, approval
        _refuse(contradiction(locked, pool) for pool in Pool.objects.filter(cluster=locked))
        locked.save(update_fields=["approval"])
        evidence = {"before": before, "approval": approval}
        AuditEntry.record(
            f"cluster:{cluster.pk}", verb="cluster.approval", actor=actor, reason=reason, evidence=evidence, now=now
        )
        announce_rules(locked, actor=actor, now=now)
    cluster.approval = approval


def refuse_contradiction(cluster: Cluster, pool: Pool) -> None:
    """Refuses a contradiction. Call it inside a transaction.

    :raises ProductionAsks: when the pool contradicts itself or its cluster
    """
    _refuse([contradiction(Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk), pool)])


def lock_first(cluster: Cluster) -> None:
    """Locks rows of apps above before the cluster, inside a transaction, to avoid deadlocks."""
    for lock in LOCKS:
        lock(cluster)


def announce_rules(cluster: Cluster, *, actor: str, now: datetime) -> None:
    for listener in LISTENERS:
        listener(cluster, actor, now)
    announce_to_pages(cluster.pk, now=now)


def announce_to_pages(cluster_id: int, *, now: datetime) -> None:
    """Announces changed pools or rules after the commit."""

    def announce_pools() -> None:
        newest = Observer.batch_of(cluster_id)
        announce.cluster_changed(cluster_id, seq=newest, nodes=(), kinds=("pools",), at=now)

    transaction.on_commit(announce_pools, robust=True)


def _refuse(sentences: Iterable[str]) -> None:
    if wrong := [sentence for sentence in sentences if sentence]:
        raise ProductionAsks(" ".join(wrong[:3]))
