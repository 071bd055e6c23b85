"""The request by which a test has every device of a node whose GPUs are partitioned or shared. Pure.

MIG: the device plugin offers each MIG device once, as nvidia.com/mig-PROFILE or, under the strategy `single`, as
nvidia.com/gpu. CUDA uses one MIG device in a process (NVIDIA MIG user guide, mig-device-names.html), and `dcgmi diag`
needs whole GPUs: "MIG configuration is incompatible with the diagnostic because it prevents access to the entire GPU"
(NVIDIA/DCGM issues 31 and 94). Shares: whoever requests all replicas of a resource has each of its GPUs. Under MPS,
and with failRequestsGreaterThanOne, the plugin gives a container one replica at most (k8s-device-plugin README.md and
internal/rm/rm.go, ValidateRequest). Read 2026-11-30.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gpu.resources import Layout, boards_of, is_gpu_resource, missing_in_words
from gpu.resources.layout import MPS, TIME_SLICING
from gpu.resources.names import is_dra, is_virtual
from wording.lists import names
from wording.numbers import count

NVIDIA = "nvidia.com/"
# The label of the MIG manager (NVIDIA/mig-parted, pkg/mig/reconfigure/reconfigure.go, read 2026-11-30).
WITHOUT_MIG = (
    "Turn MIG off on the drained node (nvidia.com/mig.config=all-disabled), then test again. "
    "Or return the node without validation."
)
BY_HAND = "Test the node by hand, then release it with a reason."


@dataclass(frozen=True)
class TestedDevices:
    resources: Mapping[str, int]
    devices: int  # that the container sees: GPUs, or MIG devices
    has_mig: bool = False

    @property
    def amount(self) -> int:
        return sum(self.resources.values())


def request_of(
    allocatable: Mapping[str, int],
    expected: Mapping[str, int],
    layout: Layout,
    *,
    physical_gpus: int | None,
    product: str = "",
) -> TestedDevices | str:
    """Returns the request of a node without whole GPUs alone, or why no request has all of its devices."""
    if never := why_untestable(allocatable, expected, layout, physical_gpus=physical_gpus):
        return never
    offered = {name: number for name, number in sorted(allocatable.items()) if is_gpu_resource(name) and number}
    if missing := missing_in_words(expected, allocatable, layout):
        return f"Missing: {missing}. A test would skip the rest."
    if not offered:
        return "The node offers no GPUs."
    devices = 0
    for name, number in offered.items():
        way = layout.way(name)
        found = _devices(number, way.replicas if way.sharing else 1)
        if found is None and len(offered) == 1 and not way.profile:
            found = physical_gpus
        if found is None:
            return f"The number of GPUs behind {count(number, 'share')} of {name} is unknown. {BY_HAND}"
        devices += found
    cut = [name for name in offered if layout.way(name).profile]
    gpus = boards_of(offered, layout, product=product) if cut else devices
    # MIG devices alone tell no number of GPUs, since a GPU may be cut in part.
    if len(cut) < len(offered) and gpus < (physical_gpus or 0):
        return f"It offers {gpus} of {count(physical_gpus or 0, 'GPU')}. A test would skip the rest."
    return TestedDevices(offered, devices, bool(cut))


def why_untestable(
    allocatable: Mapping[str, int], expected: Mapping[str, int], layout: Layout, *, physical_gpus: int | None
) -> str:
    """Returns why no test has all devices of a node, whatever it offers later. Blank: one may."""
    most = Counter(allocatable) | Counter(expected)
    known = sorted(name for name, number in most.items() if is_gpu_resource(name) and number)
    if foreign := [name for name in known if not name.startswith(NVIDIA) or is_dra(name) or is_virtual(name)]:
        return f"No test of partitioned or shared GPUs knows {names(foreign)}. {BY_HAND}"
    for name in known:
        sharing = layout.way(name).sharing
        if sharing == MPS:
            return f"MPS gives a container one share, so no test has all {physical_gpus or ''} GPUs. {BY_HAND}"
        if sharing not in ("", TIME_SLICING):
            return f"No request has all shares of {name}: {sharing}. {BY_HAND}"
    return ""


def _devices(number: int, replicas: int | None) -> int | None:
    return number // replicas if replicas and number % replicas == 0 else None


def why_not_all(gpus: int, expected: int) -> str:
    """Returns why a test would not run on all whole GPUs. Blank: it would."""
    if not gpus:
        return "The node offers no whole GPUs."
    return (
        f"The node offers {gpus} of its {count(expected, 'GPU')}: a test would skip the rest."
        if gpus < expected
        else ""
    )
