"""GPUs offered by DRA drivers, from rows of ResourceSlices.

gpu.nvidia.com (cmd/gpu-kubelet-plugin/deviceinfo.go and mig.go of k8s-dra-driver-gpu): a board has the type `gpu`, a
slice `mig`, a board for virtual machines `vfio`. Its drivers may also offer every possible slice, beside the board
or (Ampere in MIG mode) instead of it; possible slices have no UUID and represent their board. gpu.amd.com
(docs/driver-attributes.md of ROCm/k8s-gpu-dra-driver): `amdgpu` and `amdgpu-partition`, identified by PCI address;
possible partitions have no profile.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fleet.allocation.slice_pools import COLUMNS, newest_pools
from fleet.models import ResourceSlice
from gpu.resources import Use, Uses, is_gpu_resource, product_in
from gpu.resources.names import FOR_MACHINES
from gpu.versions import driver_as_written

MIB = 2**20
WHOLE = frozenset({"gpu", "amdgpu", ""})
BOARD_FOR_MACHINES = "vfio"  # device type of NVIDIA and AMD
FOR_MACHINES_ONLY = frozenset({BOARD_FOR_MACHINES, "vfio-vf"})  # the second: a virtual function, part of a board
CUT = frozenset({"mig", "amdgpu-partition"})
UNUSABLE = frozenset({"NoSchedule", "NoExecute"})  # effects of a device's taints
NO_SICKNESS = frozenset({"gpu.amd.com/memory-partition-conflict"})  # for a mode that its board is not in; no fault
NUMBERED = re.compile(r"^gpu-(\d{1,4})(?:-|$)")
DraDeviceKey = tuple[str, str, str]  # driver, pool, device: unique in a cluster
ResourceUnit = tuple[str, str]  # the resource, and which unit


@dataclass(frozen=True)
class OfferedDevice:
    driver: str
    pool: str
    name: str
    type: str
    uuid: str
    parent_uuid: str
    product: str
    profile: str
    driver_version: str
    memory_mib: int | None
    address: str  # PCI address; blank: not reported
    taints: tuple[str, ...]  # taints that keep new pods away: gpu.nvidia.com/xid=79
    is_healthy: bool = True  # False: its driver reports it unhealthy
    is_withheld: bool = False  # True: the scheduler allocates nothing from its pool

    @property
    def key(self) -> DraDeviceKey:
        return self.driver, self.pool, self.name

    @property
    def is_allocatable(self) -> bool:
        return not (self.is_withheld or self.taints)

    @property
    def board(self) -> str:
        """Returns the UUID of the device's GPU, or the name of a GPU without UUID. Blank: unknown."""
        return self.parent_uuid if self.is_cut else self.uuid or self.name

    @property
    def is_cut(self) -> bool:
        return self.type in CUT

    @property
    def index(self) -> int | None:
        found = NUMBERED.match(self.name)
        return int(found[1]) if found else None

    @property
    def unit(self) -> "ResourceUnit | None":
        """Returns the unit of the node that it occupies while allocated. None: unknown."""
        if self.is_cut and self.resource:
            return self.resource, f"{self.pool}/{self.name}"
        return (self.driver, self.board) if self.board else None

    @property
    def is_for_machines(self) -> bool:
        """Tells whether it is a board offered to virtual machines. A board bound to vfio-pci has no other offer."""
        return self.type in FOR_MACHINES_ONLY

    @property
    def is_board(self) -> bool:
        """Tells whether it identifies a GPU. A slice does; a virtual function of a shared board does not."""
        return bool(self.board and (self.resource or self.is_cut or self.type == BOARD_FOR_MACHINES))

    @property
    def unit_alone(self) -> "ResourceUnit | None":
        """Returns its unit if nothing else offers its board (dra-driver-nvidia-gpu #668: the GPU is then removed)."""
        return (self.driver + FOR_MACHINES, self.board) if self.is_for_machines and self.board else None

    @property
    def resource(self) -> str:
        """Returns the resource name under which it counts. Blank: it does not count."""
        if self.type == "mig":
            return f"{self.driver}/mig-{self.profile}" if self.uuid and self.profile else ""
        if self.is_cut:
            return f"{self.driver}/{self.profile}" if self.profile else ""
        return self.driver if self.type in WHOLE else ""


@dataclass(frozen=True)
class Offered:
    """The devices that DRA drivers offer on one node."""

    devices: tuple[OfferedDevice, ...]

    @cached_property
    def units(self) -> dict[ResourceUnit, OfferedDevice]:
        """Returns the counted units with their device: slices, and boards that are whole or may be cut."""
        found = {
            device.unit: device
            for device in sorted(self.devices, key=_representation_rank)
            if device.unit and _representation_rank(device)
        }
        others = {device.board for device in self.devices if not device.is_for_machines}
        alone = [device for device in self.devices if device.is_for_machines and device.board not in others]
        return found | {unit: device for device in alone if (unit := device.unit_alone)}

    @cached_property
    def capacity(self) -> dict[str, int]:
        return amounts_by_resource(self.units)

    @cached_property
    def allocatable(self) -> dict[str, int]:
        usable = amounts_by_resource(unit for unit, device in self.units.items() if device.is_allocatable)
        return dict.fromkeys(self.capacity, 0) | usable

    def taken(self, keys: Collection[DraDeviceKey]) -> dict[str, int]:
        """Returns the units by resource that these devices occupy. Two devices of one board are one unit."""
        claimed = [device for device in self.devices if device.key in keys]
        held = {device.unit if device.unit in self.units else device.unit_alone for device in claimed}
        return amounts_by_resource(unit for unit in held if unit in self.units)

    @property
    def uses(self) -> Uses:
        """Returns the boards by use. A board that may be cut or handed to a virtual machine counts as whole until
        then."""
        cut = {device.board: device for device in self.devices if device.is_cut and device.resource and device.board}
        whole = {device.board for unit, device in self.units.items() if unit == (device.driver, device.board)} - {*cut}
        virtual = {device.board for device in self.devices if device.type == BOARD_FOR_MACHINES} - whole - {*cut}
        mig = sum(device.type == "mig" for device in cut.values())
        found = {Use.WHOLE: len(whole), Use.MIG: mig, Use.PARTITIONED: len(cut) - mig, Use.VIRTUAL: len(virtual)}
        return {use: number for use, number in found.items() if number}

    @property
    def boards(self) -> list[OfferedDevice]:
        return [device for device in self.devices if device.type in WHOLE]

    def first(self, name: str) -> Any:
        """Returns an attribute's value from the first device that has one."""
        return next((value for device in self.devices if (value := getattr(device, name))), None)


def offered_on(cluster_id: int, nodes: Collection[str]) -> dict[str, Offered]:
    """Returns the offers by node, for nodes with GPUs of DRA drivers.

    One query, and one more if a pool is incomplete here: its other slices may be on other nodes.
    """
    columns = (*COLUMNS, "node_name", "devices")
    slices = ResourceSlice.objects.filter(cluster_id=cluster_id).order_by()
    rows = list(slices.filter(node_name__in=nodes).values(*columns))
    partial = {pool.name for pool in newest_pools(rows).values() if not pool.is_complete}
    if partial:
        rows += slices.filter(pool__in=partial).exclude(node_name__in=nodes).values(*columns)
    found = read_slices(rows)
    return {node: found[node] for node in nodes if node in found}


def read_slices(slices: Iterable[Mapping[str, Any]]) -> dict[str, Offered]:
    """Groups slices by node. Only the newest generation of a pool counts; the driver is replacing the others."""
    rows = list(slices)
    pools = newest_pools(rows)
    found: dict[str, dict[DraDeviceKey, OfferedDevice]] = defaultdict(dict)
    for row in rows:
        pool = pools[row["driver"], row["pool"]]
        if row["node_name"] and is_gpu_resource(row["driver"]) and row["pool_generation"] == pool.generation:
            devices = (replace(_device(row, each), is_withheld=pool.is_withheld) for each in row["devices"])
            found[row["node_name"]].update((device.key, device) for device in devices)
    return {node: Offered(tuple(_paired(devices.values()))) for node, devices in found.items()}


def _paired(devices: Iterable[OfferedDevice]) -> Iterator[OfferedDevice]:
    """Adds the UUID of the board to devices for virtual machines.

    NVIDIA's driver derives a UUID for them from their address (cmd/gpu-kubelet-plugin/nvlib.go, getVfioDeviceInfo),
    so only the address identifies the board. Without addresses, every board counts as possible.
    """
    devices = list(devices)
    boards = [device for device in devices if device.is_board and not device.is_for_machines]
    by_address = {(each.driver, each.address): each.board for each in boards if each.address}
    unaddressed = sorted({each.board for each in boards if not each.address}, reverse=True)
    for device in devices:
        if not device.is_for_machines or device.uuid in {each.board for each in boards}:
            yield device
        elif device.address:
            yield replace(device, uuid=by_address.get((device.driver, device.address), device.uuid))
        else:
            yield replace(device, uuid=unaddressed.pop()) if unaddressed else device


def _device(row: Mapping[str, Any], said: Mapping[str, Any]) -> OfferedDevice:
    memory = said.get("memory_bytes")
    return OfferedDevice(
        driver=row["driver"],
        pool=row["pool"],
        name=said.get("name", ""),
        type=said.get("type", ""),
        uuid=said.get("uuid", "")[:64],
        parent_uuid=said.get("parent_uuid", "")[:64],
        product=product_in(said.get("product", "")),
        profile=said.get("profile", "")[:40],
        driver_version=driver_as_written(said.get("driver_version", "")[:64]),
        memory_mib=min(memory // MIB, 2**31 - 1) if memory else None,
        address=said.get("address", "")[:64],
        taints=tuple(_taint(taint) for taint in said.get("taints", ()) if _keeps_off(taint)),
        is_healthy=said.get("healthy", True),
    )


def _keeps_off(taint: Mapping[str, str]) -> bool:
    return taint.get("effect") in UNUSABLE and taint.get("key") not in NO_SICKNESS


def _taint(said: Mapping[str, str]) -> str:
    return f"{said.get('key', '')}={said['value']}" if said.get("value") else said.get("key", "")


def _representation_rank(device: OfferedDevice) -> int:
    """Returns the device's rank for representing its unit: a board ranks above a possible slice. 0: represents none.

    A board's second offer, for virtual machines, does not count again.
    """
    return 2 if device.resource else int(device.is_cut)


def amounts_by_resource(units: Iterable[ResourceUnit]) -> dict[str, int]:
    found: dict[str, int] = {}
    for resource, _ in units:
        found[resource] = found.get(resource, 0) + 1
    return dict(sorted(found.items()))
