"""Nodes of every kind as an observer would have written them, and how many GPUs each really has."""

from typing import Any

from fleet.allocation.devices import read_slices
from fleet.models import Node
from fleet.observer.mirror.diff import remember
from fleet.observer.mirror.dra_offers import merge_offers
from fleet.observer.mirror.rows.node import node_row
from tests.fleet.documents import GPU_LABELS, a_node_seen, mig_mixed, time_sliced
from tests.make import NOON

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
SINGLE = GPU_LABELS | {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "nvidia.com/gpu.count": "56"}
RENAMED = {key: text for key, text in time_sliced(4).items() if key != "nvidia.com/gpu.product"}
# By name: what its object says, what DRA offers on it, and its physical GPUs by use.
KINDS: dict[str, tuple[dict[str, Any], list[dict[str, str]], dict[str, int]]] = {
    "whole": ({}, [], {"whole": 8}),
    "amd": ({"labels": {}, "resources": {"amd.com/gpu": 8}}, [], {"whole": 8}),
    "gaudi": ({"labels": {}, "resources": {"habana.ai/gaudi": 8}}, [], {"whole": 8}),
    "mig-single": ({"labels": SINGLE, "resources": {GPU: 56}}, [], {"mig": 8}),
    "mig-half": (
        {"labels": mig_mixed({"1g.10gb": 28}), "resources": {GPU: 4, MIG: 28}}, [], {"whole": 4, "mig": 4}
    ),
    "time-slicing": ({"labels": time_sliced(4), "resources": {GPU: 32}}, [], {"time_slicing": 8}),
    "renamed": (
        {"labels": RENAMED | {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, "resources": {f"{GPU}.shared": 32}},
        [], {"time_slicing": 8},
    ),
    "mps": ({"labels": time_sliced(10, how="mps"), "resources": {GPU: 80}}, [], {"mps": 8}),
    "dra": (
        {"labels": {}, "resources": {}}, [{"name": f"gpu-{n}", "type": "gpu", "uuid": f"GPU-{n}"} for n in range(8)],
        {"whole": 8},
    ),
    "vfio": (
        {"labels": {}, "resources": {}}, [{"name": "gpu-vfio-0", "type": "vfio", "uuid": "GPU-0"}], {"virtual": 1}
    ),
    "passed-through": ({"labels": {}, "resources": {"nvidia.com/GA102GL_A10": 2}}, [], {"virtual": 2}),
    "no-plugin": ({"resources": {}}, [], {"not_offered": 8}),
    "nobody-says": ({"labels": {"nvidia.com/gpu.present": "true"}, "resources": {}}, [], {}),
    "vgpu": ({"labels": {}, "resources": {"nvidia.com/NVIDIA_A10-12Q": 4}}, [], {}),
    "cpu": ({"labels": {}, "resources": {}}, [], {}),
}  # fmt: skip
UNCOUNTED = ("nobody-says", "vgpu")
TOTAL = sum(sum(uses.values()) for _, _, uses in KINDS.values())


def by_use(*names: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names or KINDS:
        for use, number in KINDS[name][2].items():
            found[use] = found.get(use, 0) + number
    return found


def a_node_of(cluster, kind: str, **given: Any) -> Node:
    said, devices, _ = KINDS[kind]
    slices = {"driver": "gpu.nvidia.com", "pool": kind, "pool_generation": 1, "pool_slices": 1, "node_name": kind}
    slices |= {"devices": devices, "cluster__server_version": "v1.36.4"}
    row = node_row(a_node_seen(kind, **said))
    seen = remember(None, merge_offers(row, read_slices([slices])[kind] if devices else None), now=NOON)
    row = {"uid": f"uid-of-{cluster.name}-{kind}", "resource_version": "1", "changed_at": NOON, **seen, **given}
    return Node.objects.create(cluster=cluster, **row)
