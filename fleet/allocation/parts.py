"""Pods that have parts of a GPU which another pod has for them.

KAI (Run:ai) gives fractions so: its scheduler makes a pod that requests the GPU, and puts the same group on that one
and on the pods that share it, which request nothing (KAI-Scheduler, pkg/binder/binding/resourcereservation).
"""

from collections import defaultdict
from collections.abc import Sequence

from fleet.allocation.allocations import GpuAllocation, Placement, ToldBy
from fleet.models import Pod
from gpu.resources import gpu_groups


def place_parts(placement: Placement, pods: Sequence[Pod]) -> None:
    """After those that have boards: where such a one is not placed, nothing tells where its parts are."""
    boards = _boards(placement)
    for pod in pods:
        if not pod.resources and not pod.claims:
            for group in gpu_groups(pod.labels):
                for uuid, resource in boards.get(group, ()):
                    placement.allocations[uuid].append(GpuAllocation(pod, resource, ToldBy.SCHEDULER))


def _boards(placement: Placement) -> dict[str, list[tuple[str, str]]]:
    """By group: UUIDs of boards, each with the resource by which it is allocated."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for uuid, allocations in placement.allocations.items():
        for allocation in allocations:
            for group in gpu_groups(allocation.pod.labels):
                found[group].append((uuid, allocation.resource))
    return found
