"""The clusters and pools where roles can be given, for `people`, which does not know them."""

from collections.abc import Iterator

from fleet.models import Cluster, Pool
from people.models.user import ScopeKind
from people.places import Place


def clusters_and_pools() -> Iterator[Place]:
    """Yields each cluster before its pools. Two queries."""
    pools = list(Pool.objects.order_by("name").values_list("cluster_id", "pk", "name"))
    for pk, name in Cluster.objects.order_by("name").values_list("pk", "name"):
        yield Place(ScopeKind.CLUSTER, pk, name, pk)
        for cluster_id, key, pool in pools:
            if cluster_id == pk:
                yield Place(ScopeKind.POOL, key, f"{name}/{pool}", pk)


def pool_place(pool: Pool) -> Place:
    return Place(ScopeKind.POOL, pool.pk, f"{pool.cluster.name}/{pool.name}", pool.cluster_id)
