"""The clusters and pools that roles can be given on, told to `people`, which does not know of them."""

from collections.abc import Iterator

from fleet.models import Cluster, Pool
from people.models.user import ScopeKind
from people.places import Place


def places() -> Iterator[Place]:
    """Two queries. Each cluster before its pools."""
    pools = list(Pool.objects.order_by("name").values_list("cluster_id", "pk", "name"))
    for pk, name in Cluster.objects.order_by("name").values_list("pk", "name"):
        yield Place(ScopeKind.CLUSTER, pk, name, pk)
        for cluster_id, key, pool in pools:
            if cluster_id == pk:
                yield Place(ScopeKind.POOL, key, f"{name}/{pool}", pk)


def place_of(pool: Pool) -> Place:
    return Place(ScopeKind.POOL, pool.pk, f"{pool.cluster.name}/{pool.name}", pool.cluster_id)
