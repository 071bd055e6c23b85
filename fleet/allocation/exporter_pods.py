"""Pods that a DCGM exporter reports on GPUs.

DRA's claims and the kubelet are more reliable: they are the allocation, while this is a reading up to half a minute
old. Pods are matched by UID, so a recreated pod of the same name has nothing. A device plugin's choice lasts as long
as the pod, so an old reading is still right for a pod that still exists.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.allocation.allocations import AllocationSource, GpuAllocation, Placement, Unplaced
from fleet.models import ExporterReading, Pod
from gpu.resources import Layout, Way
from gpu.resources.names import AMD_GPU

BELIEVED = {
    AllocationSource.CLAIM: "its claim",
    AllocationSource.KUBELET: "its kubelet",
    AllocationSource.SCHEDULER: "its scheduler",
}


@dataclass(frozen=True)
class NamedDevice:
    uuid: str
    gi_id: str  # blank: the whole GPU
    profile: str

    def __str__(self) -> str:
        return f"slice {self.gi_id} ({self.profile}) of {self.uuid}" if self.gi_id else self.uuid


def uuids_by_index(reading: ExporterReading | None) -> dict[int, str]:
    devices = reading.devices if reading else []
    by_uuid = {device["uuid"]: device["index"] for device in devices if device["index"] is not None}
    return {index: uuid for uuid, index in by_uuid.items()}


def place_pods_of_exporter(
    placement: Placement, reading: ExporterReading, pods: Iterable[Pod], layout: Layout, *, now: datetime
) -> None:
    here = {pod.uid: pod for pod in pods}
    for uid, devices in _by_pod(reading).items():
        if uid in here:
            _Placing(placement, here[uid], layout, reading.read_at, reading.is_current(now=now)).place(devices)


def _by_pod(reading: ExporterReading) -> Mapping[str, list[NamedDevice]]:
    found: dict[str, dict[NamedDevice, None]] = {}
    for device in reading.devices:
        named = NamedDevice(device["uuid"], device["gi_id"], device["profile"])
        for pod in device["pods"]:
            if pod["uid"]:
                found.setdefault(pod["uid"], {})[named] = None
    return {uid: list(devices) for uid, devices in found.items()}


@dataclass(frozen=True)
class _Placing:
    placement: Placement
    pod: Pod
    layout: Layout
    seen_at: datetime | None
    is_current: bool

    def place(self, devices: Sequence[NamedDevice]) -> None:
        known = self.placement.boards_of(self.pod)
        free = []
        for device in devices:
            if device.uuid in known:
                continue
            if other := self._taken_by(device):
                self._differ(device, f"{BELIEVED[other.source]} reports that {other.pod} has it", other.pod)
            else:
                free.append(device)
        for one in [one for one in self.placement.unplaced if one.pod.pk == self.pod.pk]:
            free = self._fill(one, free)
        for device in free:
            self._differ_from_known(device, known)

    def _fill(self, lacking: Unplaced, devices: Sequence[NamedDevice]) -> list[NamedDevice]:
        """Assigns devices to an unplaced amount. Returns the remaining devices."""
        way = self.layout.way(lacking.resource) if lacking.resource else None
        fitting = [device for device in devices if way is None or _fits(device, lacking.resource, way)]
        if not fitting:
            return list(devices)
        if lacking.number is not None and len(fitting) > lacking.number:
            amount = f"{len(fitting)} devices, but the pod requests {lacking.number} of {lacking.resource}"
            self.placement.disagreements.append(
                f"The DCGM exporter names {self.pod} on {amount}. None of these names is used."
            )
            return [device for device in devices if device not in fitting]
        for device in fitting:
            self.placement.allocations[device.uuid].append(self._allocation(lacking, device))
        self._shrink(lacking, len(fitting), is_shared=bool(way and way.sharing))
        return [device for device in devices if device not in fitting]

    def _allocation(self, lacking: Unplaced, device: NamedDevice) -> GpuAllocation:
        return GpuAllocation(
            self.pod,
            lacking.resource,
            AllocationSource.METRICS,
            device.profile,
            device.gi_id,
            lacking.claim,
            seen_at=self.seen_at,
            is_current=self.is_current,
        )

    def _shrink(self, lacking: Unplaced, placed: int, *, is_shared: bool) -> None:
        """Reduces the unplaced amount. Two shares of one GPU are reported once."""
        place = self.placement.unplaced.index(lacking)
        left = 0 if lacking.number is None or is_shared else lacking.number - placed
        rest = [Unplaced(self.pod, lacking.resource, left)] if left else []
        self.placement.unplaced[place : place + 1] = rest

    def _taken_by(self, device: NamedDevice) -> GpuAllocation | None:
        """Returns another pod's allocation that conflicts with this device."""
        for allocation in self.placement.allocations.get(device.uuid, ()):
            if (
                allocation.source is AllocationSource.METRICS
                or allocation.only_looks
                or allocation.pod.pk == self.pod.pk
            ):
                continue
            if self.layout.way(allocation.resource).sharing or (allocation.profile and device.gi_id):
                continue
            return allocation
        return None

    def _differ(self, device: NamedDevice, why: str, believed: Pod) -> None:
        said = f"The DCGM exporter names {self.pod} on {device}; {why}. {believed} is shown there."
        self.placement.disagreements.append(said)

    def _differ_from_known(self, device: NamedDevice, known: Mapping[str, GpuAllocation]) -> None:
        where = [f"{BELIEVED[one.source]} names {uuid}" for uuid, one in known.items() if one.source in BELIEVED]
        why = " and ".join(where) or "the pod requests no such device"
        said = f"The DCGM exporter names {self.pod} on {device}, but {why}. The exporter's name is ignored."
        self.placement.disagreements.append(said)


def _fits(device: NamedDevice, resource: str, way: Way) -> bool:
    """Tells whether a device can be of this resource. AMD's plugin may count partitions as whole GPUs, without any
    label."""
    return is_of_profile(device.profile, way.profile) or (resource == AMD_GPU and not way.profile)


def is_of_profile(profile: str, wanted: str) -> bool:
    """Compares profiles: 1g.10gb+me is 1g.10gb.me in a resource name; AMD's exporter may report cpx for cpx_nps4."""
    return profile.replace("+", ".") == wanted.replace("+", ".") or bool(profile and wanted.startswith(f"{profile}_"))
