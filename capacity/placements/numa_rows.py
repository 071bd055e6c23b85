"""Reads the NUMA nodes of running pods with several GPUs."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from capacity.placements.numa_figures import GpuPod, NodeZones, NumaFigures, NumaNode, numa_figures
from fleet.allocation.devices import WHOLE
from fleet.allocation.slice_pools import COLUMNS, newest_pools
from fleet.models import Bookmark, Node, NodeTopology, Pod, ResourceClaim, ResourceSlice
from gpu.resources import is_gpu_resource
from kube.resources import NODE_TOPOLOGIES, RESOURCE_CLAIMS, RESOURCE_SLICES

# The topology updater of node feature discovery writes every 60 s, so younger pods may not be counted yet.
COUNTED_AFTER = timedelta(minutes=5)
SEVERAL = 2  # GPUs
DeviceKey = tuple[str, str, str]  # driver, pool, device


def numa_of_nodes(cluster_id: int, names: Collection[str], running: Any, *, now: datetime) -> NumaFigures | None:
    """Returns the figures of nodes and of the running pods on them. None: nothing tells NUMA nodes now.

    Six queries, and two more where pods have claims.
    """
    is_live = Bookmark.objects.are_all_fresh
    has_topologies = is_live(cluster_id, NODE_TOPOLOGIES.name, now=now)
    rows = list(NodeTopology.objects.filter(cluster=cluster_id, name__in=names)) if has_topologies else []
    changed_at = {row.name: row.changed_at for row in rows}
    nodes = _nodes(cluster_id, rows)
    columns = ("namespace", "name", "node_name", "resources", "claims", "started_at")
    old = [
        row
        for row in running.filter(Q(gpus__gte=SEVERAL) | ~Q(claims=[]), node_name__in=names).values(*columns)
        if row["started_at"] is None or now - row["started_at"] >= COUNTED_AFTER
    ]
    has_devices = is_live(cluster_id, RESOURCE_SLICES.name, RESOURCE_CLAIMS.name, now=now)
    of_claims, room = _numa_nodes_of_claims(cluster_id, names, old) if has_devices else ({}, {})
    pods: dict[str, list[GpuPod]] = defaultdict(list)
    for row in old:
        gpus = {name: number for name, number in row["resources"].items() if is_gpu_resource(name)}
        its = [numa for claim in row["claims"] for numa in of_claims.get((row["namespace"], claim), ())]
        could_fit = 0 < len(its) <= room.get(row["node_name"], 0) and None not in its
        if sum(gpus.values()) >= SEVERAL or could_fit:
            name = f"{row['namespace']}/{row['name']}"
            topology_at, at = changed_at.get(row["node_name"]), row["started_at"]
            is_counted = topology_at is not None and at is not None and at <= topology_at
            known = frozenset(numa for numa in its if numa is not None) if could_fit else frozenset()
            pods[row["node_name"]].append(GpuPod(name, gpus, known, is_counted))
    return numa_figures(nodes, pods) if nodes or room else None


def _nodes(cluster_id: int, rows: Collection[NodeTopology]) -> list[NodeZones]:
    """Returns the zones with the capacity of their nodes and the requests of all pods there. Two queries at most."""
    names = [row.name for row in rows]
    if not names:
        return []
    capacity = dict(Node.objects.filter(cluster=cluster_id, name__in=names).values_list("name", "capacity"))
    requested: dict[str, Counter[str]] = defaultdict(Counter)
    pods = Pod.objects.filter(cluster=cluster_id, node_name__in=names).not_done().exclude(resources={}).order_by()
    for node, resources in pods.values_list("node_name", "resources"):
        requested[node].update(resources)
    return [
        NodeZones(
            row.name,
            row.policy,
            [NumaNode(zone["allocatable"], zone["available"]) for zone in row.zones],
            capacity.get(row.name, {}),
            requested[row.name],
        )
        for row in rows
    ]


def _numa_nodes_of_claims(
    cluster_id: int, names: Collection[str], pods: Collection[Mapping[str, Any]]
) -> tuple[dict[tuple[str, str], list[int | None]], dict[str, int]]:
    """Returns the NUMA node of each GPU of each claim, and by node the most GPUs of one NUMA node.

    Both count whole GPUs whose driver reports the NUMA node; None stands for any other device of a GPU driver. Two
    queries at most.
    """
    claims = {name for row in pods for name in row["claims"]}
    if not claims:
        return {}, {}
    numa: dict[DeviceKey, int] = {}
    room: dict[str, Counter[int]] = defaultdict(Counter)
    slices = ResourceSlice.objects.filter(cluster=cluster_id, node_name__in=names).order_by()
    offered = list(slices.values(*COLUMNS, "node_name", "devices"))
    pools = newest_pools(offered)
    for row in offered:
        pool = pools[row["driver"], row["pool"]]
        is_counted = is_gpu_resource(pool.driver) and row["pool_generation"] == pool.generation
        for each in row["devices"] if is_counted else ():
            if "numa" in each and each.get("type", "") in WHOLE:
                numa[pool.driver, pool.name, each["name"]] = each["numa"]
                room[row["node_name"]][each["numa"]] += 1
    rows = ResourceClaim.objects.filter(cluster=cluster_id, name__in=claims if numa else ()).order_by()
    found = {
        (namespace, name): [
            numa.get((one["driver"], one["pool"], one["device"]))
            for one in allocated
            if not one.get("admin") and is_gpu_resource(one["driver"])
        ]
        for namespace, name, allocated in rows.values_list("namespace", "name", "allocated")
    }
    return found, {node: max(counts.values()) for node, counts in room.items()}
