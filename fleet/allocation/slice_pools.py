"""The pools of ResourceSlices: which generation counts, and whether all its slices exist.

Only the newest generation of a pool counts, and `resourceSliceCount` is the number of its slices (kubernetes.io,
ResourceSlice v1). From 1.35 the scheduler allocates nothing from an incomplete pool. Before, only a request for all
devices waits for it: kubernetes, dynamic-resource-allocation/structured, pools and allocator of each release.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count

from fleet.models import ResourceSlice
from gpu.compatibility.ranges import Range
from wording.numbers import count

WITHHELD_BY = Range(since="1.35")  # versions of Kubernetes; an unknown one is not among them
COLUMNS = ("driver", "pool", "pool_generation", "pool_slices", "cluster__server_version")  # of ResourceSlices
PoolKey = tuple[str, str]  # driver, pool: unique in a cluster


@dataclass(frozen=True)
class PublishedPool:
    """The newest generation of a pool."""

    driver: str
    name: str
    generation: int
    slices: int  # that exist
    slice_count: int | None  # by the driver; None: it reports none
    server_version: str  # of its cluster; blank: unknown

    @property
    def is_complete(self) -> bool:
        return self.slice_count is None or self.slices == self.slice_count

    @property
    def is_withheld(self) -> bool:
        """Tells whether the scheduler allocates nothing from it."""
        return not self.is_complete and self.server_version in WITHHELD_BY

    @property
    def text(self) -> str:
        return f"{self.slices} of {count(self.slice_count or 0, 'ResourceSlice')}"


def newest_pools(slices: Iterable[Mapping[str, Any]]) -> dict[PoolKey, PublishedPool]:
    """Returns the pools of slices. A row with `slices` stands for as many slices as that."""
    found: dict[PoolKey, PublishedPool] = {}
    for row in slices:
        key, generation = (row["driver"], row["pool"]), row["pool_generation"]
        pool = found.get(key)
        if pool is None or generation > pool.generation:
            found[key] = PublishedPool(
                *key, generation, row.get("slices", 1), row["pool_slices"], row["cluster__server_version"]
            )
        elif generation == pool.generation:
            found[key] = replace(pool, slices=pool.slices + row.get("slices", 1))
    return found


def slice_pools(cluster_id: int) -> dict[PoolKey, PublishedPool]:
    """Returns the pools of a cluster. One query."""
    rows: Any = ResourceSlice.objects.filter(cluster=cluster_id).order_by()
    return newest_pools(rows.values(*COLUMNS).annotate(slices=Count("pk")))


def withheld_on_nodes(cluster_id: int) -> dict[str, list[PublishedPool]]:
    """Returns withheld pools by the nodes of their slices. One query, and one more if there are any."""
    withheld = {key: pool for key, pool in slice_pools(cluster_id).items() if pool.is_withheld}
    found: dict[str, list[PublishedPool]] = {}
    if withheld:
        slices = ResourceSlice.objects.filter(cluster=cluster_id, pool__in={name for _, name in withheld})
        for driver, name, node in (
            slices.order_by("driver", "pool").values_list("driver", "pool", "node_name").distinct()
        ):
            if pool := withheld.get((driver, name)):
                found.setdefault(node, []).append(pool)
    return found
