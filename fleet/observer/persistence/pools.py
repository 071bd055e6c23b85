"""Pool membership of nodes, by selector. A node stays in its pools while labels are missing."""

from collections.abc import Iterable

from django.db import transaction

from fleet.allocation.counters import kept
from fleet.models import Node, Observer, Pool
from fleet.observer.mirror.rows import Columns
from fleet.pools.membership import belongs
from kube.selectors import parse

AT_ONCE = 500


def sort_nodes(cluster_id: int, nodes: Iterable[Columns]) -> None:
    """Updates the pools of these nodes. Two queries, and changes.

    Call it under the observer's lock, which deleting a pool also takes.
    """
    rows = {row["id"]: row for row in nodes}
    pools = {pool.pk: parse(pool.selector) for pool in Pool.objects.filter(cluster_id=cluster_id)}
    if not rows or not pools:
        return
    through = Node.pools.through
    members = set(through.objects.filter(node_id__in=rows).values_list("node_id", "pool_id"))
    wanted = {
        (node_id, pool_id)
        for node_id, row in rows.items()
        for pool_id, selector in pools.items()
        if belongs(selector, row, is_member=(node_id, pool_id) in members)
    }
    with kept(cluster_id, (node_id for node_id, _ in wanted ^ members)):
        through.objects.bulk_create(
            (through(node_id=node_id, pool_id=pool_id) for node_id, pool_id in wanted - members),
            ignore_conflicts=True,
        )
        for node_id, pool_id in members - wanted:
            through.objects.filter(node_id=node_id, pool_id=pool_id).delete()


def sort_cluster(cluster_id: int) -> None:
    """Updates all nodes of a cluster, after its pools changed."""
    columns = ("id", "labels", "driver_unknown_since")
    keys = list(Node.objects.filter(cluster_id=cluster_id).order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), AT_ONCE):
        with transaction.atomic():
            Observer.lock(cluster_id)
            sort_nodes(cluster_id, Node.objects.filter(pk__in=keys[start : start + AT_ONCE]).values(*columns))


def agreed(cluster_id: int) -> int:
    """Returns a number that changes with the selectors."""
    return hash(tuple(Pool.objects.filter(cluster_id=cluster_id).order_by("pk").values_list("pk", "selector")))
