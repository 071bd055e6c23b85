"""Pods that have every GPU of their node, so that no source needs to name them.

A device plugin gives a container as many units as requested, and an unshared GPU to one pod at a time
(k8s-device-plugin; Kubernetes' documentation of device plugins: extended resources are integers and not
overcommitted). A kubelet starts a pod only if all these devices are healthy. So a running pod keeps a GPU that fell
off the bus later.
"""

from collections.abc import Sequence
from dataclasses import replace

from fleet.allocation.allocations import AllocationSource, Board, GpuAllocation, Placement
from fleet.models import Node, Pod
from gpu.resources import Layout, ResourceKind, Use, gpu_groups


def place_whole_node_pod(
    placement: Placement, boards: Sequence[Board], node: Node, pods: Sequence[Pod]
) -> Sequence[Board]:
    """Places such a pod on each GPU, unless another source contradicts it."""
    pod, name = _holder_of_all(node, pods)
    if (
        pod is None
        or any(one.pod.pk != pod.pk for one in placement.unplaced)
        or not holds_all_boards(boards, pod, node)
    ):
        return boards
    placement.unplaced[:] = [one for one in placement.unplaced if one.resource != name]
    deduced = GpuAllocation(pod, name, AllocationSource.COUNT)
    return [board if board.allocations else replace(board, allocations=(deduced,)) for board in boards]


def _holder_of_all(node: Node, pods: Sequence[Pod]) -> tuple[Pod | None, str]:
    number = node.physical_gpus
    offers = (node.expected, node.capacity)
    names = {name for offer in offers for name, amount in offer.items() if amount}
    if not number or node.uses != {Use.WHOLE: number} or len(names) != 1:
        return None, ""
    (name,) = names
    if max(offer.get(name, 0) for offer in offers) != number:
        return None, ""
    if Layout.read(node.layout).way(name).kind is not ResourceKind.WHOLE:
        return None, ""
    asking = [pod for pod in pods if pod.resources or pod.claims or gpu_groups(pod.labels)]
    if len(asking) != 1 or asking[0].resources != {name: number} or asking[0].claims or gpu_groups(asking[0].labels):
        return None, ""
    if node.allocatable.get(name) != number and asking[0].started_at is None:
        return None, ""  # its kubelet may still reject it
    return asking[0], name


def holds_all_boards(boards: Sequence[Board], pod: Pod, node: Node) -> bool:
    """Tells whether the list is complete, numbered, and free of other pods."""
    return {board.index for board in boards} == set(range(node.physical_gpus or 0)) and all(
        one.pod.pk == pod.pk for board in boards for one in board.allocations
    )
