"""The words of who has which GPU of a node, and of what nothing tells."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from fleet.allocation.devices import DraDeviceKey, OfferedDevice
from fleet.models import ExporterReading, Gpu, Pod


class ToldBy(StrEnum):
    KUBELET = "kubelet"  # in the status of the pod
    CLAIM = "claim"  # DRA's
    SCHEDULER = "scheduler"  # an annotation of the pod: HAMi's, Volcano's
    METRICS = "metrics"  # the labels of the node's DCGM exporter
    COUNT = "count"  # it has as many as its node has


@dataclass(frozen=True)
class GpuAllocation:
    """A pod on one board. `profile` blank: it has the whole board, or takes turns on it."""

    pod: Pod
    resource: str
    told: ToldBy
    profile: str = ""
    device: str = ""  # the UUID of its slice, or the name of the DRA device; by metrics, the slice's number
    claim: str = ""
    only_looks: bool = False  # access for administration: it takes the device from nobody
    seen_at: datetime | None = None  # None: as its pod and its claim are seen
    is_current: bool = True  # False: it was last seen there at `seen_at`


@dataclass(frozen=True)
class Board:
    """A GPU. `index` None: a UUID that somebody has, and whose number nothing tells."""

    index: int | None
    uuid: str
    product: str
    memory_mib: int | None
    allocations: tuple[GpuAllocation, ...] = ()
    taints: tuple[str, ...] = ()  # why its DRA driver lets nothing new on it


@dataclass(frozen=True)
class Unplaced:
    """What a pod has of a resource, and nothing says which."""

    pod: Pod
    resource: str
    number: int | None  # None: of a claim that is not allocated, or not seen
    claim: str = ""


@dataclass(frozen=True)
class NodeAllocations:
    """Of one node."""

    boards: tuple[Board, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    disagreements: tuple[str, ...] = ()  # of its exporter, with what is believed instead
    exporter: ExporterReading | None = None  # what its exporter last said, or why it did not; None: never asked
    is_current: bool = False  # what its exporter said
    vendor: str = ""  # of its GPUs
    shares_unplaced: bool = False  # some of its GPUs have users that nothing places

    def of(self, gpu: Gpu) -> "AllocatedGpu":
        board = next((one for one in self.boards if one.index == gpu.index), None)
        uuid, taints = (board.uuid, board.taints) if board else (gpu.uuid, ())
        if board is not None and (board.allocations or not self.unplaced):
            return AllocatedGpu(gpu, board.allocations, taints, uuid, may_have_more=self.shares_unplaced)
        return AllocatedGpu(gpu, None, taints, uuid)


@dataclass(frozen=True)
class AllocatedGpu:
    """A GPU's row with who has it. `allocations` None: of its node some are allocated, and nothing says which."""

    gpu: Gpu
    allocations: tuple[GpuAllocation, ...] | None
    taints: tuple[str, ...]
    uuid: str = ""
    may_have_more: bool = False  # it is shared, and not all who share GPUs here are placed


@dataclass
class Placement:
    """What of one node is known by its names, while pods are placed."""

    by_key: Mapping[DraDeviceKey, OfferedDevice]
    profiles: Mapping[str, OfferedDevice]  # slices by their own UUID
    allocations: dict[str, list[GpuAllocation]] = field(
        default_factory=lambda: defaultdict(list)
    )  # by the board's UUID
    unplaced: list[Unplaced] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)

    def boards_of(self, pod: Pod) -> dict[str, GpuAllocation]:
        """By UUID, with how it is known."""
        return {
            uuid: one for uuid, allocations in self.allocations.items() for one in allocations if one.pod.pk == pod.pk
        }
