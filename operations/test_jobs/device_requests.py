"""The request by which a test has every device of a node whose GPUs are partitioned or shared. Pure.

MIG: the device plugin offers each MIG device once, as nvidia.com/mig-PROFILE or, under the strategy `single`, as
nvidia.com/gpu. CUDA uses one MIG device in a process (NVIDIA MIG user guide, mig-device-names.html), and `dcgmi diag`
needs whole GPUs: "MIG configuration is incompatible with the diagnostic because it prevents access to the entire GPU"
(NVIDIA/DCGM issues 31 and 94). Shares: whoever requests all replicas of a resource has each of its GPUs. Under MPS,
and with failRequestsGreaterThanOne, the plugin gives a container one replica at most (k8s-device-plugin README.md and
internal/rm/rm.go, ValidateRequest). Read 2026-11-30.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu.resources import Layout, is_gpu_resource, missing_in_words
from gpu.resources.layout import MPS, TIME_SLICING
from gpu.resources.names import is_dra, is_virtual
from wording.lists import names
from wording.numbers import count

NVIDIA = "nvidia.com/"
BY_HAND = "Test the node by hand, then release it with a reason."


@dataclass(frozen=True)
class DeviceRequest:
    resources: Mapping[str, int]
    devices: int  # that the container sees: GPUs, or MIG devices
    has_mig: bool = False

    @property
    def amount(self) -> int:
        return sum(self.resources.values())


def request_of(
    allocatable: Mapping[str, int], expected: Mapping[str, int], layout: Layout, *, physical_gpus: int | None
) -> DeviceRequest | str:
    """Returns the request of a node without whole GPUs alone, or why no request has all of its devices."""
    offered = {name: number for name, number in sorted(allocatable.items()) if is_gpu_resource(name) and number}
    if foreign := [name for name in offered if not name.startswith(NVIDIA) or is_dra(name) or is_virtual(name)]:
        return f"No test of partitioned or shared GPUs knows {names(foreign)}. {BY_HAND}"
    if missing := missing_in_words(expected, allocatable, layout):
        return f"Missing: {missing}. A test would skip the rest."
    if not offered:
        return "The node offers no GPUs."
    devices = 0
    for name, number in offered.items():
        way = layout.way(name)
        if way.sharing == MPS:
            return f"MPS gives a container one share, so no test has all {physical_gpus or ''} GPUs. {BY_HAND}"
        if way.sharing not in ("", TIME_SLICING):
            return f"No request has all shares of {name}: {way.sharing}. {BY_HAND}"
        found = _devices(number, way.replicas if way.sharing else 1)
        if found is None and len(offered) == 1 and not way.profile:
            found = physical_gpus
        if found is None:
            return f"The number of GPUs behind {count(number, 'share')} of {name} is unknown. {BY_HAND}"
        devices += found
    has_mig = any(layout.way(name).profile for name in offered)
    if not has_mig and devices < (physical_gpus or 0):
        return f"Its shares are of {devices} of {count(physical_gpus or 0, 'GPU')}. A test would skip the rest."
    return DeviceRequest(offered, devices, has_mig)


def _devices(number: int, replicas: int | None) -> int | None:
    return number // replicas if replicas and number % replicas == 0 else None
