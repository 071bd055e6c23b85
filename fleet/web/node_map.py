"""The map: every GPU node as the numbers its cells are drawn from, by pool."""

from datetime import datetime
from typing import Any

from django.db.models import F

from fleet.models import Bookmark, Node, Pool
from fleet.node_state import NodeState
from fleet.web.filters import with_state

FIELDS = (
    "pk", "name", "code", "gpu_allocated", "gpu_allocatable", "gpu_expected", "is_held", "parts_allocated",
    "parts_allocatable", "cluster_id",
)  # fmt: skip
PARTS = {
    f"parts_{what}": F(f"slices_{what}") + F(f"shares_{what}") for what in ("allocated", "allocatable")
}  # of GPUs that are cut or shared: drawn as one bar, since they are no GPUs


def map_groups(user, *, now: datetime) -> list[dict[str, Any]]:
    """Costs four queries. A node in two pools is drawn in the first of them: the map counts each GPU once."""
    pools = {
        pool.pk: f"{pool.cluster.name} / {pool.name}"
        for pool in Pool.objects.visible_to(user).select_related("cluster")
    }
    nodes = with_state(Node.objects.visible_to(user).with_gpus()).annotate(**PARTS).order_by("cluster_id", "name")
    members = Node.pools.through.objects.filter(pool_id__in=pools).order_by("-pool_id")
    pool_of: dict[int, int] = dict(members.values_list("node_id", "pool_id"))
    fresh = {row.cluster_id for row in Bookmark.objects.filter(kind="nodes") if row.is_fresh(now=now)}
    groups: dict[str, list[list[Any]]] = {title: [] for title in pools.values()}
    for row in nodes.values_list(*FIELDS):
        title = pools.get(pool_of.get(row[0], 0), "in no pool")
        groups.setdefault(title, []).append(_cells(row, is_seen=row[-1] in fresh))
    return [{"title": title, "nodes": cells} for title, cells in groups.items() if cells]


def _cells(row: tuple, *, is_seen: bool) -> list[Any]:
    """[id, name, state, allocated, allocatable, expected, held, seen, parts allocated, parts allocatable]"""
    pk, name, code, allocated, allocatable, expected, is_held, parts_taken, parts, _ = row
    numbers = [allocated, allocatable or 0, expected or 0, int(is_held), int(is_seen), parts_taken, parts]
    return [pk, name, int(NodeState(code)), *numbers]
