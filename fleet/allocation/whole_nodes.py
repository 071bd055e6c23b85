"""A pod that has every GPU of its node: which ones nothing needs to name.

A device plugin gives a container as many of a resource as it asks for, and a GPU that is not shared to one pod at a
time (k8s-device-plugin; Kubernetes' documentation of device plugins: extended resources are integers and not
overcommitted). A kubelet only starts a pod if all these devices are healthy then. So a pod that runs keeps a GPU that
fell off the bus later.
"""

from collections.abc import Sequence
from dataclasses import replace

from fleet.allocation.allocations import Board, GpuAllocation, Placement, ToldBy
from fleet.models import Node, Pod
from gpu.resources import Layout, ResourceKind, Use, gpu_groups


def place_all(placement: Placement, boards: Sequence[Board], node: Node, pods: Sequence[Pod]) -> Sequence[Board]:
    """With that pod on each of the boards, where there is one and nothing contradicts it."""
    pod, name = _holder_of_all(node, pods)
    if pod is None or any(one.pod.pk != pod.pk for one in placement.unplaced) or not _are_its(boards, pod, node):
        return boards
    placement.unplaced[:] = [one for one in placement.unplaced if one.resource != name]
    deduced = GpuAllocation(pod, name, ToldBy.COUNT)
    return [board if board.allocations else replace(board, allocations=(deduced,)) for board in boards]


def _holder_of_all(node: Node, pods: Sequence[Pod]) -> tuple[Pod | None, str]:
    """The one that asks for all that there are, and the resource: of a node whose GPUs are whole and offered as one."""
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


def _are_its(boards: Sequence[Board], pod: Pod, node: Node) -> bool:
    """Whether these are all there are, each with a number, and nobody else is on one."""
    return {board.index for board in boards} == set(range(node.physical_gpus or 0)) and all(
        one.pod.pk == pod.pk for board in boards for one in board.allocations
    )
