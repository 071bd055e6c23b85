"""The pools of ResourceSlices: which generation counts, and whether all its slices exist.

Only the newest generation of a pool counts, and `resourceSliceCount` is the number of its slices (kubernetes.io,
ResourceSlice v1). From 1.35 the scheduler allocates nothing from an incomplete pool: kubernetes,
dynamic-resource-allocation/structured/internal/stable, pools_stable.go and allocator_stable.go.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Count

from fleet.models import ResourceSlice
from wording.numbers import count

PoolKey = tuple[str, str]  # driver, pool: unique in a cluster


@dataclass(frozen=True)
class SlicePool:
    """The newest generation of a pool."""

    driver: str
    name: str
    generation: int
    slices: int  # that exist
    slice_count: int | None  # by the driver; None: it reports none

    @property
    def is_complete(self) -> bool:
        return self.slice_count is None or self.slices == self.slice_count

    @property
    def text(self) -> str:
        return f"{self.slices} of {count(self.slice_count or 0, 'ResourceSlice')}"


def newest_pools(slices: Iterable[Mapping[str, Any]]) -> dict[PoolKey, SlicePool]:
    """Returns the pools of slices. A row with `slices` stands for as many slices as that."""
    found: dict[PoolKey, SlicePool] = {}
    for row in slices:
        key, generation = (row["driver"], row["pool"]), row["pool_generation"]
        pool = found.get(key)
        if pool is None or generation > pool.generation:
            found[key] = SlicePool(*key, generation, row.get("slices", 1), row["pool_slices"])
        elif generation == pool.generation:
            found[key] = replace(pool, slices=pool.slices + row.get("slices", 1))
    return found


def slice_pools(cluster_id: int) -> dict[PoolKey, SlicePool]:
    """Returns the pools of a cluster. One query."""
    rows: Any = ResourceSlice.objects.filter(cluster=cluster_id).order_by()
    columns = ("driver", "pool", "pool_generation", "pool_slices")
    return newest_pools(rows.values(*columns).annotate(slices=Count("pk")))


def incomplete_on_nodes(cluster_id: int) -> dict[str, list[SlicePool]]:
    """Returns incomplete pools by the nodes of their slices. One query, and one more if there are any."""
    incomplete = {key: pool for key, pool in slice_pools(cluster_id).items() if not pool.is_complete}
    found: dict[str, list[SlicePool]] = {}
    if incomplete:
        slices = ResourceSlice.objects.filter(cluster=cluster_id, pool__in={name for _, name in incomplete})
        for driver, name, node in (
            slices.order_by("driver", "pool").values_list("driver", "pool", "node_name").distinct()
        ):
            if pool := incomplete.get((driver, name)):
                found.setdefault(node, []).append(pool)
    return found
