"""Writes of pool membership, by selector, in short transactions (Z40). A node stays in its pools while labels are
missing.

A pool is marked as unsorted before its nodes are written, and as sorted after. The observer sorts what a crash left.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any

from django.db import transaction

from edges.slices import slices
from fleet.allocation.counters import count_written_nodes
from fleet.models import Cluster, Node, Observer, Pool
from fleet.pools.membership import belongs, claimed
from kube.selectors import parse

COLUMNS = ("id", "labels", "driver_unknown_since")
MEMBERS = Node.pools.through


def sort_nodes(cluster_id: int, nodes: Iterable[dict[str, Any]], *, pools: Collection[int] | None = None) -> None:
    """Updates the pools of these nodes, or only their membership in `pools`. Two queries, and changes.

    Call it under the observer's lock, which deleting a pool also takes.
    """
    rows = {row["id"]: row for row in nodes}
    found = Pool.objects.filter(cluster_id=cluster_id)
    found = found if pools is None else found.filter(pk__in=pools)
    selectors = {pool.pk: parse(pool.selector) for pool in found}
    if not rows or not selectors:
        return
    there = MEMBERS.objects.filter(node_id__in=rows, pool_id__in=selectors)
    members = set(there.values_list("node_id", "pool_id"))
    wanted = {
        (node_id, pool_id)
        for node_id, row in rows.items()
        for pool_id, selector in selectors.items()
        if belongs(selector, row, is_member=(node_id, pool_id) in members)
    }
    left: dict[int, list[int]] = defaultdict(list)
    for node_id, pool_id in members - wanted:
        left[pool_id].append(node_id)
    with count_written_nodes(cluster_id, (node_id for node_id, _ in wanted ^ members)):
        MEMBERS.objects.bulk_create(
            (MEMBERS(node_id=node_id, pool_id=pool_id) for node_id, pool_id in wanted - members),
            ignore_conflicts=True,
        )
        for pool_id, node_ids in left.items():
            MEMBERS.objects.filter(pool_id=pool_id, node_id__in=node_ids).delete()


def sort_cluster(cluster_id: int) -> None:
    """Updates the pools of all nodes of a cluster."""
    unsorted = list(Pool.objects.filter(cluster_id=cluster_id, is_sorted=False))
    _sort(cluster_id, Node.objects.filter(cluster_id=cluster_id).values_list("pk", flat=True))
    _note_sorted(unsorted)


def sort_pools(cluster: Cluster, pools: Collection[Pool]) -> bool:
    """Updates the nodes of these pools. Returns whether any node entered or left."""
    changed: set[int] = set()
    for pool in pools:
        members = MEMBERS.objects.filter(pool=pool).values_list("node_id", flat=True)
        changed |= set(members) ^ claimed(cluster, pool.selector, pool=pool)
    _sort(cluster.pk, changed, pools=[pool.pk for pool in pools])
    _note_sorted(pools)
    return bool(changed)


def remove_nodes(pool: Pool) -> None:
    """Removes the nodes from a pool that is about to be deleted, and marks it as unsorted first."""
    Pool.objects.filter(pk=pool.pk).update(is_sorted=False)
    members = MEMBERS.objects.filter(pool=pool)
    for some in slices(members.order_by("node_id").values_list("node_id", flat=True)):
        node_ids = some.whole()
        with transaction.atomic():
            Observer.lock(pool.cluster_id)
            with count_written_nodes(pool.cluster_id, node_ids):
                members.filter(node_id__in=node_ids).delete()


def _sort(cluster_id: int, keys: Iterable[int], *, pools: Collection[int] | None = None) -> None:
    for some in slices(sorted(keys)):
        with transaction.atomic():
            Observer.lock(cluster_id)
            sort_nodes(cluster_id, Node.objects.filter(pk__in=some.whole()).values(*COLUMNS), pools=pools)


def _note_sorted(pools: Iterable[Pool]) -> None:
    """Marks pools as sorted, except pools whose selector changed meanwhile."""
    for pool in pools:
        Pool.objects.filter(pk=pool.pk, selector=pool.selector, is_sorted=False).update(is_sorted=True)
