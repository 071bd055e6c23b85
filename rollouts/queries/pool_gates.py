"""The gates that new stages of a pool have: the usual ones, with those of the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fleet.models import Cluster, Pool
from rollouts.models import PoolGates

PoolOptions = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class ClusterGates:
    """The gates of the pools of a cluster, by pool in the order of their names."""

    by_pool: Mapping[int, PoolOptions]

    def usual_of(self, pool_id: int | None, usual: PoolOptions) -> dict[str, dict[str, Any]]:
        """Returns the default gates of a stage. A stage of no pool may take nodes of each, so it has the gates of all.

        Where two pools have other options for a gate, the first by name counts there.
        """
        found: dict[str, dict[str, Any]] = {}
        for pool, options in self.by_pool.items():
            if pool_id in (None, pool):
                found = {key: dict(given) for key, given in options.items()} | found
        return {key: dict(given) for key, given in usual.items()} | found


def gates_in(cluster: Cluster) -> ClusterGates:
    rows = PoolGates.objects.filter(pool__cluster=cluster).order_by("pool__name").values_list("pool_id", "options")
    return ClusterGates(dict(rows))


def gates_of(pool: Pool) -> PoolGates | None:
    return PoolGates.objects.filter(pool=pool).first()
