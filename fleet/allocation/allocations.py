"""Data structures of GPU allocations of a node."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from fleet.allocation.devices import DraDeviceKey, OfferedDevice
from fleet.models import ExporterReading, Gpu, Pod


class AllocationSource(StrEnum):
    KUBELET = "kubelet"  # the pod's status
    CLAIM = "claim"  # DRA's
    SCHEDULER = "scheduler"  # a pod annotation: HAMi's, Volcano's
    METRICS = "metrics"  # the labels of the node's DCGM exporter
    COUNT = "count"  # the pod has as many as its node has


@dataclass(frozen=True)
class GpuAllocation:
    """A pod on one GPU. `profile` blank: it has the whole GPU, or time-slices it."""

    pod: Pod
    resource: str
    source: AllocationSource
    profile: str = ""
    device: str = ""  # the UUID of its slice, or the name of the DRA device; from metrics, the slice's number
    claim: str = ""
    only_looks: bool = False  # administrative access: the device stays available to others
    seen_at: datetime | None = None  # None: as current as its pod and claim
    is_current: bool = True  # False: last seen there at `seen_at`


@dataclass(frozen=True)
class Board:
    """A GPU. `index` None: a UUID with a user, but without a known number."""

    index: int | None
    uuid: str
    product: str
    memory_mib: int | None
    allocations: tuple[GpuAllocation, ...] = ()
    taints: tuple[str, ...] = ()  # reasons why its DRA driver accepts no new pod


@dataclass(frozen=True)
class Unplaced:
    """The amount of a resource that a pod has on unknown GPUs."""

    pod: Pod
    resource: str
    number: int | None  # None: from a claim that is unallocated or unseen
    claim: str = ""


@dataclass(frozen=True)
class NodeAllocations:
    boards: tuple[Board, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    disagreements: tuple[str, ...] = ()  # between its exporter and more reliable sources
    exporter: ExporterReading | None = None  # its exporter's last answer or error; None: never queried
    is_current: bool = False  # whether the exporter's answer is current
    vendor: str = ""  # vendor of its GPUs
    shares_unplaced: bool = False  # some of its GPUs have users without a known GPU

    def of(self, gpu: Gpu) -> "AllocatedGpu":
        board = next((one for one in self.boards if one.index == gpu.index), None)
        uuid, taints = (board.uuid, board.taints) if board else (gpu.uuid, ())
        if board is not None and (board.allocations or not self.unplaced):
            return AllocatedGpu(gpu, board.allocations, taints, uuid, may_have_more=self.shares_unplaced)
        free = sum(not one.allocations for one in self.boards)
        is_probable = sum(one.number or 0 for one in self.unplaced) >= free
        return AllocatedGpu(gpu, None, taints, uuid, perhaps=self.unplaced, is_probable=is_probable)


@dataclass(frozen=True)
class AllocatedGpu:
    """A GPU's row with its users. `allocations` None: some GPUs of its node are allocated, but unknown which."""

    gpu: Gpu
    allocations: tuple[GpuAllocation, ...] | None
    taints: tuple[str, ...]
    uuid: str = ""
    may_have_more: bool = False  # shared, and some users of shared GPUs here have no known GPU
    perhaps: tuple[Unplaced, ...] = ()  # pods of the node whose GPU no source names
    is_probable: bool = False  # there are as many of these as GPUs without a named user


@dataclass
class Placement:
    """The working data of one node while its pods are assigned to GPUs."""

    by_key: Mapping[DraDeviceKey, OfferedDevice]
    profiles: Mapping[str, OfferedDevice]  # slices by their own UUID
    allocations: dict[str, list[GpuAllocation]] = field(default_factory=lambda: defaultdict(list))  # by the GPU's UUID
    unplaced: list[Unplaced] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    def boards_of(self, pod: Pod) -> dict[str, GpuAllocation]:
        return {
            uuid: one for uuid, allocations in self.allocations.items() for one in allocations if one.pod.pk == pod.pk
        }
