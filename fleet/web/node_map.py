"""The map: every GPU node as the numbers its cells are drawn from, by pool, the worst first."""

from datetime import datetime
from typing import Any

from django.db.models import F
from django.db.models.functions import Coalesce, Greatest, Least

from fleet.models import Node, Pool
from fleet.node_state import NodeState
from fleet.sight import sights_of_all
from fleet.web.filters import WORST_FIRST, with_state

FIELDS = (
    "pk", "name", "code", "whole_allocated", "whole_allocatable", "whole", "is_held", "parts_allocated",
    "parts_allocatable", "parts_expected", "others", "cluster_id",
)  # fmt: skip
EXPECTED = Coalesce(F("gpu_expected"), 0)
ALLOCATABLE = Least(Coalesce(F("gpu_allocatable"), 0), EXPECTED)
PARTS = {what: F(f"slices_{what}") + F(f"shares_{what}") for what in ("expected", "allocatable", "allocated")}
PARTS_ALLOCATABLE = Least(PARTS["allocatable"], PARTS["expected"])
DRAWN = {
    "whole": EXPECTED,
    "whole_allocatable": ALLOCATABLE,
    "whole_allocated": Least(F("gpu_allocated"), ALLOCATABLE),  # what a pod holds and the node lost is missing
    # GPUs that are cut or shared: as many cells, filled as far as their slices and shares are taken.
    "others": Greatest(Coalesce(F("physical_gpus"), 0) - EXPECTED, 0),
    "parts_expected": PARTS["expected"],
    "parts_allocatable": PARTS_ALLOCATABLE,
    "parts_allocated": Least(PARTS["allocated"], PARTS_ALLOCATABLE),
}
RANKS = {state: rank for rank, state in enumerate(WORST_FIRST)}


def map_groups(user, *, now: datetime) -> list[dict[str, Any]]:
    """Costs five queries. A node in two pools is drawn in the first of them: the map counts each GPU once."""
    pools = {
        pool.pk: f"{pool.cluster.name} / {pool.name}"
        for pool in Pool.objects.visible_to(user).select_related("cluster")
    }
    nodes = with_state(Node.objects.visible_to(user).with_gpus()).annotate(**DRAWN)
    members = Node.pools.through.objects.filter(pool_id__in=pools).order_by("-pool_id")
    pool_of: dict[int, int] = dict(members.values_list("node_id", "pool_id"))
    fresh = {cluster_id for cluster_id, sight in sights_of_all(now=now).items() if sight.is_live}
    groups: dict[str, list[list[Any]]] = {title: [] for title in pools.values()}
    for row in nodes.order_by("severity", "cluster_id", "name").values_list(*FIELDS):
        title = pools.get(pool_of.get(row[0], 0), "in no pool")
        groups.setdefault(title, []).append(_cells(row, is_seen=row[-1] in fresh))
    drawn = [{"title": title, "nodes": cells} for title, cells in groups.items() if cells]
    return sorted(drawn, key=lambda group: RANKS[NodeState(group["nodes"][0][2])])


def _cells(row: tuple, *, is_seen: bool) -> list[Any]:
    """[id, name, state, allocated, allocatable, whole, held, seen, parts allocated, allocatable, expected, others]"""
    pk, name, code, allocated, allocatable, whole, is_held, *parts, _ = row
    return [pk, name, int(NodeState(code)), allocated, allocatable, whole, int(is_held), int(is_seen), *parts]
