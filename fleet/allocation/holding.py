"""The words of who holds which GPU of a node, and of what nothing tells."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fleet.allocation.devices import Device, Key
from fleet.models import Gpu, Pod


class Told(StrEnum):
    KUBELET = "kubelet"
    CLAIM = "claim"


@dataclass(frozen=True)
class Holder:
    """A pod on one board. `profile` blank: it has the whole board, or takes turns on it."""

    pod: Pod
    resource: str
    told: Told
    profile: str = ""
    device: str = ""  # the UUID of its slice, or the name of the DRA device
    claim: str = ""
    only_looks: bool = False  # access for administration: it takes the device from nobody


@dataclass(frozen=True)
class Board:
    """A GPU. `index` None: a UUID that somebody holds, and whose number nothing tells."""

    index: int | None
    uuid: str
    product: str
    memory_mib: int | None
    holders: tuple[Holder, ...] = ()
    taints: tuple[str, ...] = ()  # why its DRA driver lets nothing new on it


@dataclass(frozen=True)
class Unplaced:
    """What a pod holds of a resource, and nothing says which."""

    pod: Pod
    resource: str
    number: int | None  # None: of a claim that is not allocated, or not seen
    claim: str = ""


@dataclass(frozen=True)
class Held:
    """Of one node."""

    boards: tuple[Board, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()

    def of(self, gpu: Gpu) -> "GpuHeld":
        board = next((one for one in self.boards if (one.uuid, one.index) == (gpu.uuid, gpu.index)), None)
        if board is not None and (board.holders or not self.unplaced):
            return GpuHeld(gpu, board.holders, board.taints)
        return GpuHeld(gpu, None, board.taints if board else ())


@dataclass(frozen=True)
class GpuHeld:
    """A GPU's row with who holds it. `holders` None: some GPUs of its node are held, and nothing says whether it is."""

    gpu: Gpu
    holders: tuple[Holder, ...] | None
    taints: tuple[str, ...]


@dataclass
class Places:
    """What of one node is known by its names, while pods are placed."""

    by_key: Mapping[Key, Device]
    profiles: Mapping[str, Device]  # slices by their own UUID
    holders: dict[str, list[Holder]] = field(default_factory=lambda: defaultdict(list))  # by the board's UUID
    unplaced: list[Unplaced] = field(default_factory=list)
