"""Rows of NodeResourceTopologies: the GPUs of each NUMA node, and the policy of the kubelet."""

from typing import Any

from fleet.observer.mirror.rows.text import fitted
from gpu.resources import is_gpu_resource
from kube.quantity import whole_quantity
from kube.structs.topology import NodeTopologySeen, Zone

POLICY = "topologyManagerPolicy"
NUMA = "Node"
MOST = 64  # zones
# v1alpha1 joins policy and scope: noderesourcetopology-api, pkg/apis/topology/v1alpha1/types.go.
JOINED = {
    "None": "none",
    "BestEffort": "best-effort",
    "Restricted": "restricted",
    "SingleNUMANode": "single-numa-node",
}
SCOPES = ("ContainerLevel", "PodLevel")


def topology_row(seen: NodeTopologySeen) -> dict[str, Any] | None:
    """Returns None for a node without GPUs in any zone."""
    zones = [_zone(zone) for zone in (seen.zones or [])[:MOST] if zone.type == NUMA]
    if not any(zone["allocatable"] for zone in zones):
        return None
    return {"name": fitted(seen.name, 253), "policy": _policy(seen), "zones": zones}


def _zone(zone: Zone) -> dict[str, Any]:
    """Returns the GPUs of the zone. A number that cannot be read means that none is in use."""
    gpus = [each for each in zone.resources or () if is_gpu_resource(each.name)]
    every = {fitted(each.name, 253): whole_quantity(each.allocatable) or 0 for each in gpus}
    left = {fitted(each.name, 253): whole_quantity(each.available) for each in gpus}
    return {
        "name": fitted(zone.name, 63),
        "allocatable": every,
        "available": {name: every[name] if number is None else number for name, number in left.items()},
    }


def _policy(seen: NodeTopologySeen) -> str:
    """Returns the kubelet's own word. Blank: not reported, or a policy of something else."""
    written = next((each.value or "" for each in seen.attributes or () if each.name == POLICY), "")
    if not written:
        joined = next(iter(seen.topology_policies or ()), "")
        for scope in SCOPES:
            joined = joined.removesuffix(scope)
        written = JOINED.get(joined, "")
    return written if written in JOINED.values() else ""
