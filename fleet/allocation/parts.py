"""Pods with parts of a GPU that another pod reserves for them.

KAI (Run:ai) implements fractions like this. Its scheduler creates a pod that requests the GPU, and labels it and the
sharing pods, which request none, with the same group (KAI-Scheduler, pkg/binder/binding/resourcereservation).
"""

from collections import defaultdict
from collections.abc import Sequence

from fleet.allocation.allocations import AllocationSource, GpuAllocation, Placement
from fleet.models import Pod
from gpu.resources import gpu_groups


def place_sharing_pods(placement: Placement, pods: Sequence[Pod]) -> None:
    """Places sharing pods. Call it after the reserving pods are placed, since only they identify the GPU."""
    boards = _boards(placement)
    for pod in pods:
        if not pod.resources and not pod.claims:
            for group in gpu_groups(pod.labels):
                for uuid, resource in boards.get(group, ()):
                    placement.allocations[uuid].append(GpuAllocation(pod, resource, AllocationSource.SCHEDULER))


def _boards(placement: Placement) -> dict[str, list[tuple[str, str]]]:
    """Returns the GPUs by group: UUIDs, each with the allocated resource."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for uuid, allocations in placement.allocations.items():
        for allocation in allocations:
            for group in gpu_groups(allocation.pod.labels):
                found[group].append((uuid, allocation.resource))
    return found
