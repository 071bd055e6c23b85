"""Restraints on operations: the stop of the fleet, freezes of clusters and pools, vetoes of releases, restores."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from fleet.models import Pool
from operations.models import Freeze, Operation

Veto = Callable[[Collection[str]], Mapping[str, str]]  # returns why nodes may not be changed so, by node UID


class OperationVeto(Protocol):
    def __call__(self, operation: Operation, node_uid: str, *, now: datetime) -> str: ...


# Apps above register here.
RELEASE_VETOES: list[Veto] = []  # of a return to service
DRIVER_VETOES: list[Veto] = []  # of a hold of the driver, and of its end
# Registered by apps above: each returns why one operation may not write to a node, by its UID. Blank: it may.
OPERATION_VETOES: list[OperationVeto] = []
# Registered by apps above: each stops the work that a restored database must not continue, and returns a sentence.
AFTER_RESTORE: list[Callable[[str, datetime], str]] = []


def release_vetoes(node_uids: Collection[str]) -> dict[str, str]:
    """Returns why nodes may not be released, by node UID."""
    return reasons_of(RELEASE_VETOES, node_uids)


def reasons_of(vetoes: Sequence[Veto], node_uids: Collection[str]) -> dict[str, str]:
    """Returns why nodes may not be changed so, by node UID."""
    return {uid: reason for veto in vetoes for uid, reason in veto(node_uids).items()}


def why_no_write(operation: Operation, node_uid: str, *, now: datetime) -> str:
    """Returns why this operation may not write to the node. Blank: it may, as far as apps above say."""
    return next(filter(None, (veto(operation, node_uid, now=now) for veto in OPERATION_VETOES)), "")


def stop_reason(*, now: datetime) -> str:
    """Returns why the whole fleet is stopped; empty if it is not. One query."""
    stop = Freeze.objects.in_force(now=now).filter(is_stop=True).order_by("pk").first()
    return stop.sentence(now=now) if stop else ""


def freezes_of(cluster_id: int, node_uids: Collection[str], *, now: datetime) -> dict[str, str]:
    """Returns why each frozen node may not be drained, by node UID. Two queries at most. The stop is not among them."""
    binding = Freeze.objects.in_force(now=now).binding(cluster_id).filter(is_stop=False)
    freezes = list(binding.select_related("cluster", "pool").order_by("pk"))
    if not freezes:
        return {}
    pools: dict[str, set[int]] = {uid: set() for uid in node_uids}
    members = Pool.nodes.through.objects.filter(node__cluster=cluster_id, node__uid__in=list(node_uids))
    for uid, pool_id in members.values_list("node__uid", "pool_id"):
        pools[uid].add(pool_id)
    found = {}
    for uid, its in pools.items():
        bound = next((freeze for freeze in freezes if freeze.pool_id is None or freeze.pool_id in its), None)
        if bound:
            found[uid] = bound.sentence(now=now)
    return found
