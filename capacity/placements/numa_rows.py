"""Reads the NUMA nodes of running pods with several GPUs."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from capacity.placements.numa_figures import GpuPod, NodeZones, NumaFigures, NumaNode, numa_figures
from fleet.models import Bookmark, NodeTopology, ResourceClaim, ResourceSlice
from gpu.resources import is_gpu_resource
from kube.resources import NODE_TOPOLOGIES, RESOURCE_CLAIMS, RESOURCE_SLICES

# The topology updater of node feature discovery writes every 60 s, so younger pods may not be counted yet.
COUNTED_AFTER = timedelta(minutes=5)
SEVERAL = 2  # GPUs
DeviceKey = tuple[str, str, str]  # driver, pool, device


def numa_of_nodes(cluster_id: int, names: Collection[str], running: Any, *, now: datetime) -> NumaFigures | None:
    """Returns the figures of nodes and of the running pods on them. None: nothing tells NUMA nodes.

    Four queries, and two more where pods have claims.
    """
    has_topologies = Bookmark.objects.knows_all(cluster_id, NODE_TOPOLOGIES.name)
    rows = NodeTopology.objects.filter(cluster=cluster_id, name__in=names) if has_topologies else ()
    nodes = [
        NodeZones(row.name, row.policy, [NumaNode(zone["allocatable"], zone["available"]) for zone in row.zones])
        for row in rows
    ]
    columns = ("namespace", "name", "node_name", "resources", "claims", "started_at")
    old = [
        row
        for row in running.filter(Q(gpus__gte=SEVERAL) | ~Q(claims=[]), node_name__in=names).values(*columns)
        if row["started_at"] is None or now - row["started_at"] >= COUNTED_AFTER
    ]
    has_devices = Bookmark.objects.knows_all(cluster_id, RESOURCE_SLICES.name, RESOURCE_CLAIMS.name)
    of_claims, room = _numa_nodes_of_claims(cluster_id, names, old) if has_devices else ({}, {})
    pods: dict[str, list[GpuPod]] = defaultdict(list)
    for row in old:
        gpus = {name: number for name, number in row["resources"].items() if is_gpu_resource(name)}
        its = [numa for claim in row["claims"] for numa in of_claims.get((row["namespace"], claim), ())]
        could_fit = 0 < len(its) <= room.get(row["node_name"], 0)
        if sum(gpus.values()) >= SEVERAL or could_fit:
            name = f"{row['namespace']}/{row['name']}"
            pods[row["node_name"]].append(GpuPod(name, gpus, frozenset(its if could_fit else ())))
    return numa_figures(nodes, pods) if nodes or room else None


def _numa_nodes_of_claims(
    cluster_id: int, names: Collection[str], pods: Collection[Mapping[str, Any]]
) -> tuple[dict[tuple[str, str], list[int]], dict[str, int]]:
    """Returns the NUMA node of each device of each claim, and by node the most GPUs of one NUMA node.

    Only GPUs whose driver reports the NUMA node are in both. Two queries at most.
    """
    claims = {name for row in pods for name in row["claims"]}
    if not claims:
        return {}, {}
    numa: dict[DeviceKey, int] = {}
    room: dict[str, Counter[int]] = defaultdict(Counter)
    slices = ResourceSlice.objects.filter(cluster=cluster_id, node_name__in=names).order_by()
    for driver, pool, node, devices in slices.values_list("driver", "pool", "node_name", "devices"):
        for each in devices if is_gpu_resource(driver) else ():
            if "numa" in each:
                numa[driver, pool, each["name"]] = each["numa"]
                room[node][each["numa"]] += 1
    rows = ResourceClaim.objects.filter(cluster=cluster_id, name__in=claims if numa else ()).order_by()
    found = {
        (namespace, name): [
            numa[key]
            for one in allocated
            if not one.get("admin") and (key := (one["driver"], one["pool"], one["device"])) in numa
        ]
        for namespace, name, allocated in rows.values_list("namespace", "name", "allocated")
    }
    return found, {node: max(counts.values()) for node, counts in room.items()}
