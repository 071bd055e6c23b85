"""GPU allocations of pods: the exact GPUs where a source reports them, else the amounts.

Three API objects report them: the kubelet, per container and device (KEP-4680); DRA, whose claims name devices; and
annotations of schedulers for shared GPUs. The device plugin's choice is only in a DCGM exporter's labels. A pod that
requests all GPUs of its node has each of them.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from typing import NamedTuple

from django.db.models import Q

from fleet.allocation.allocations import (
    AllocatedGpu,
    AllocationSource,
    Board,
    GpuAllocation,
    NodeAllocations,
    Placement,
    Unplaced,
)
from fleet.allocation.devices import Offered, read_slices
from fleet.allocation.exporter_pods import is_of_profile, place_pods_of_exporter, uuids_by_index
from fleet.allocation.parts import place_sharing_pods
from fleet.allocation.slice_pools import COLUMNS
from fleet.allocation.whole_nodes import place_whole_node_pod
from fleet.models import ExporterReading, Gpu, Node, Pod, ResourceClaim, ResourceSlice
from gpu.resources import Layout, Way, gpu_groups
from gpu.resources.layout import HAMI

OLD_MIG = re.compile(r"^MIG-(GPU-[0-9a-f-]+)/\d+/\d+$")  # drivers before 470 name a slice by its board
CLAIMS_AT_ONCE = 200


def allocations_on(nodes: Sequence[Node], *, now: datetime) -> dict[int, NodeAllocations]:
    """Returns the allocations by node. Four queries, and one for every 200 claims."""
    ids = [node.pk for node in nodes]
    gpus: dict[int, list[Gpu]] = defaultdict(list)
    for gpu in Gpu.objects.filter(node__in=ids).order_by("index"):
        gpus[gpu.node_id].append(gpu)
    pods: dict[int, list[Pod]] = defaultdict(list)
    asking = Pod.objects.filter(node__in=ids).not_done().exclude(resources={}, claims=[], is_tenant=False)
    for pod in asking.order_by("namespace", "name"):
        pods[pod.node_id or 0].append(pod)
    offered = _offered(nodes)
    claims = _claims(nodes, pods)
    readings = _readings(nodes)
    return {
        node.pk: allocated(
            node,
            gpus[node.pk],
            pods[node.pk],
            offered.get((node.cluster_id, node.name)),
            claims,
            readings.get((node.cluster_id, node.name)),
            now=now,
        )
        for node in nodes
    }


class GpusOfPod(NamedTuple):
    indices: list[int]  # indices of GPUs that it has, completely or partly
    slices: list[tuple[int, str]]  # MIG slices with a number from the exporter: index of the GPU, number


def gpus_of_pods(nodes: Sequence[Node], *, now: datetime) -> dict[str, GpusOfPod]:
    """Returns the GPUs by pod UID. Costs as much as `allocations_on`."""
    found: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for its in allocations_on(nodes, now=now).values():
        for board in its.boards:
            for allocation in board.allocations:
                if board.index is not None and not allocation.only_looks:
                    parts = _numbers_of_slices(allocation, board, its.exporter)
                    found[allocation.pod.uid] |= {(board.index, number) for number in ("", *parts)}
    return {
        uid: GpusOfPod(sorted({index for index, _ in parts}), sorted(part for part in parts if part[1]))
        for uid, parts in found.items()
    }


def allocated_indices(nodes: Sequence[Node], *, now: datetime) -> dict[str, list[int]]:
    """Returns the indices of GPUs by pod UID. Costs as much as `allocations_on`."""
    return {uid: its.indices for uid, its in gpus_of_pods(nodes, now=now).items()}


def _numbers_of_slices(allocation: GpuAllocation, board: Board, exporter: ExporterReading | None) -> Collection[str]:
    """Returns the exporter's slice numbers. Kubelet and claims name slices differently from metric series."""
    if not allocation.profile or exporter is None:
        return ()
    return {
        device["gi_id"]
        for device in exporter.devices
        if device["uuid"] == board.uuid
        and device["gi_id"]
        and is_of_profile(device["profile"], allocation.profile)
        and any(pod["uid"] == allocation.pod.uid for pod in device["pods"])
    }


def allocated_gpus(gpus: Sequence[Gpu], *, now: datetime) -> list[AllocatedGpu]:
    """Returns the GPUs with allocations. Load them with their nodes. Costs as much as `allocations_on`."""
    found = allocations_on(list({gpu.node_id: gpu.node for gpu in gpus}.values()), now=now)
    return [found[gpu.node_id].of(gpu) for gpu in gpus]


def allocated(
    node: Node,
    gpus: Iterable[Gpu],
    pods: Sequence[Pod],
    offered: Offered | None,
    claims: Mapping[tuple[int, str, str], ResourceClaim],
    reading: ExporterReading | None,
    *,
    now: datetime,
) -> NodeAllocations:
    devices = offered.devices if offered else ()
    slices = {device.uuid: device for device in devices if device.type == "mig" and device.uuid}
    placement = Placement({device.key: device for device in devices}, slices)
    layout = Layout.read(node.layout)
    for pod in pods:
        _place_claims(placement, pod, claims)
        _place_devices(placement, pod, layout)
    if reading is not None:
        place_pods_of_exporter(placement, reading, pods, layout, now=now)
    place_sharing_pods(placement, pods)
    boards = place_whole_node_pod(
        placement, list(_boards(gpus, placement.allocations, uuids_by_index(reading))), node, pods
    )
    taints = {device.board: device.taints for device in devices if device.taints}
    return NodeAllocations(
        tuple(replace(board, taints=taints.get(board.uuid, ())) for board in boards),
        tuple(placement.unplaced),
        tuple(placement.disagreements),
        exporter=reading,
        is_current=reading is not None and reading.is_current(now=now),
        vendor=node.gpu_vendor,
        shares_unplaced=any(one.resource and layout.way(one.resource).sharing for one in placement.unplaced),
    )


def _place_claims(placement: Placement, pod: Pod, claims: Mapping[tuple[int, str, str], ResourceClaim]) -> None:
    for name in pod.claims:
        claim = claims.get((pod.cluster_id, pod.namespace, name))
        if claim is None:
            placement.unplaced.append(Unplaced(pod, "", None, name))
            continue
        for one in claim.allocated:
            device = placement.by_key.get((one["driver"], one["pool"], one["device"]))
            if device is not None and device.board:
                only_looks = bool(one.get("admin"))
                allocation = GpuAllocation(
                    pod, device.resource, AllocationSource.CLAIM, device.profile, device.name, name, only_looks
                )
                placement.allocations[device.board].append(allocation)


def _place_devices(placement: Placement, pod: Pod, layout: Layout) -> None:
    for resource, number in pod.resources.items():
        placed = 0
        for device in pod.devices.get(resource, ()):
            board, profile = _board_of(device, placement, layout.way(resource))
            if board:
                placement.allocations[board].append(
                    GpuAllocation(pod, resource, _source_of(pod, layout.way(resource)), profile, device)
                )
                placed += 1
        if placed < number and not (placed and layout.way(resource).sharing):  # two shares may be on one GPU
            placement.unplaced.append(Unplaced(pod, resource, number - placed))


def _source_of(pod: Pod, way: Way) -> AllocationSource:
    """Returns the source. Schedulers of HAMi and KAI place shares; the kubelet sees only which share."""
    return AllocationSource.SCHEDULER if way.sharing == HAMI or gpu_groups(pod.labels) else AllocationSource.KUBELET


def _board_of(device: str, placement: Placement, way: Way) -> tuple[str, str]:
    """Returns the UUID of a device's GPU, and its slice profile. Blank: unknown."""
    if cut := placement.profiles.get(device):
        return cut.parent_uuid, cut.profile
    if old := OLD_MIG.match(device):
        return old[1], way.profile
    return ("", "") if device.startswith("MIG-") else (device, "")


def _boards(
    gpus: Iterable[Gpu], allocations: Mapping[str, list[GpuAllocation]], uuids: Mapping[int, str]
) -> Iterable[Board]:
    """Returns the GPUs with rows by number. A UUID without a row goes to a row without UUID.

    `uuids` are the exporter's, for GPUs that no other source names.
    """
    rows = list(gpus)
    known = {gpu.uuid for gpu in rows}
    source = {index: uuid for index, uuid in uuids.items() if uuid not in known}
    named = [(row, row.uuid or source.get(row.index, "")) for row in rows]
    strangers = sorted(set(allocations) - {uuid for _, uuid in named})
    for row, uuid in named:
        if uuid:
            yield Board(row.index, uuid, row.product, row.memory_mib, tuple(allocations.get(uuid, ())))
    nameless = [row for row, uuid in named if not uuid]
    for gpu, uuid in zip_longest(nameless, strangers):
        index = gpu.index if gpu and not strangers else None
        product, memory = (gpu.product, gpu.memory_mib) if gpu else ("", None)
        yield Board(index, uuid or "", product, memory, tuple(allocations.get(uuid or "", ())))


def _offered(nodes: Sequence[Node]) -> dict[tuple[int, str], Offered]:
    wanted = _any_of_conditions(
        Q(cluster_id=cluster_id, node_name__in=some) for cluster_id, some in _node_names(nodes).items()
    )
    rows: dict[int, list[dict]] = defaultdict(list)
    columns = ("cluster_id", *COLUMNS, "node_name", "devices")
    for row in ResourceSlice.objects.filter(wanted).order_by().values(*columns):
        rows[row["cluster_id"]].append(row)
    return {(cluster_id, name): one for cluster_id in rows for name, one in read_slices(rows[cluster_id]).items()}


def _readings(nodes: Sequence[Node]) -> dict[tuple[int, str], ExporterReading]:
    wanted = _any_of_conditions(
        Q(cluster_id=cluster_id, node_name__in=some) for cluster_id, some in _node_names(nodes).items()
    )
    return {(row.cluster_id, row.node_name): row for row in ExporterReading.objects.filter(wanted)}


def _node_names(nodes: Sequence[Node]) -> Mapping[int, list[str]]:
    names: dict[int, list[str]] = defaultdict(list)
    for node in nodes:
        names[node.cluster_id].append(node.name)
    return names


def _claims(nodes: Sequence[Node], pods: Mapping[int, Sequence[Pod]]) -> dict[tuple[int, str, str], ResourceClaim]:
    keys = [
        (pod.cluster_id, pod.namespace, name) for node in nodes for pod in pods.get(node.pk, ()) for name in pod.claims
    ]
    found: dict[tuple[int, str, str], ResourceClaim] = {}
    for start in range(0, len(keys), CLAIMS_AT_ONCE):
        for claim in ResourceClaim.objects.filter(_pods_by_name(keys[start : start + CLAIMS_AT_ONCE])).order_by():
            found[claim.cluster_id, claim.namespace, claim.name] = claim
    return found


def _pods_by_name(keys: Collection[tuple[int, str, str]]) -> Q:
    names: dict[tuple[int, str], list[str]] = defaultdict(list)
    for cluster_id, namespace, name in keys:
        names[cluster_id, namespace].append(name)
    return _any_of_conditions(
        Q(cluster_id=cluster_id, namespace=namespace, name__in=some) for (cluster_id, namespace), some in names.items()
    )


def _any_of_conditions(parts: Iterable[Q]) -> Q:
    found = Q(pk__in=[])
    for part in parts:
        found |= part
    return found
