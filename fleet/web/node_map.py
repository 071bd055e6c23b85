"""The map: every GPU node as the numbers its cells are drawn from, by pool, the worst first."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from fleet.allocation.amounts import PODS_READ
from fleet.freshness.sight import sights_of_all
from fleet.models import Node, Pool

FIELDS = (
    "pk", "name", "state_code", "gpu_allocated", "gpu_allocatable", "gpu_expected", "is_held", "physical_gpus",
    "slices_allocated", "slices_allocatable", "slices_expected",
    "shares_allocated", "shares_allocatable", "shares_expected", "cluster_id",
)  # fmt: skip
TAKEN = (3, 8)  # where a node's cells say what is allocated


def map_groups(user, *, now: datetime) -> list[dict[str, Any]]:
    """Costs six queries. A node in two pools is drawn in the first of them: the map counts each GPU once."""
    pools = {
        pool.pk: f"{pool.cluster.name} / {pool.name}"
        for pool in Pool.objects.visible_to(user).select_related("cluster")
    }
    nodes = Node.objects.visible_to(user).with_gpus().order_by("cluster_id", "name")
    members = Node.pools.through.objects.filter(pool_id__in=pools).order_by("-pool_id")
    pool_of: dict[int, int] = dict(members.values_list("node_id", "pool_id"))
    fresh = {cluster_id for cluster_id, sight in sights_of_all(now=now).items() if sight.is_live}
    with_pods = set(PODS_READ.values_list("cluster", flat=True))
    groups: dict[str, list[list[Any]]] = {title: [] for title in pools.values()}
    for row in nodes.values_list(*FIELDS):
        title = pools.get(pool_of.get(row[0], 0), "in no pool")
        groups.setdefault(title, []).append(_cells(row, is_seen=row[-1] in fresh, knows_pods=row[-1] in with_pods))
    drawn = [(title, sorted(cells, key=_rank)) for title, cells in groups.items() if cells]
    worst_first = sorted(drawn, key=lambda group: _rank(group[1][0]))
    return [{"title": title, "nodes": cells} for title, cells in worst_first]


def _rank(cells: Sequence[Any]) -> int:
    return cells[2]


def _cells(row: tuple, *, is_seen: bool, knows_pods: bool) -> list[Any]:
    """[id, name, state, allocated, allocatable, whole, held, seen, parts allocated, allocatable, expected, others]

    What a pod holds and the node lost is missing. `others` are GPUs that are cut or shared: as many cells, filled as
    far as their slices and shares, the parts, are taken. Allocated is null where pods were never read.
    """
    pk, name, code, *whole, is_held, physical, slice_taken, slice_left, slices, taken, left, shares, _ = row
    allocated, allocatable, expected = _possible(*whole)
    parts = _possible(slice_taken + taken, slice_left + left, slices + shares)
    others = max(0, (physical or 0) - expected)
    cells = [pk, name, code, allocated, allocatable, expected, int(is_held), int(is_seen), *parts, others]
    return cells if knows_pods else [None if place in TAKEN else each for place, each in enumerate(cells)]


def _possible(allocated: int, allocatable: int | None, expected: int | None) -> tuple[int, int, int]:
    usable = min(allocatable or 0, expected or 0)
    return min(allocated, usable), usable, expected or 0
