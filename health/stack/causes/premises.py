"""Facts of the node and the pod that contradict a cause. An entry names its premises, and they are checked here. Pure.

A premise of which nothing is known holds. `facts` are the named groups of the matched line: `needs_driver`, the oldest
driver that the program accepts; `needs_cuda`, its CUDA version; `seen_driver`, the driver that the container sees;
`seen_cuda`, the CUDA version of that, as libcuda reports it (11040 is 11.4); `for_kernel`, the kernel of a module;
`free`, the free and the whole memory of a GPU.
"""

import re
from collections.abc import Callable, Mapping

from gpu.compatibility import the_matrix
from gpu.compatibility.ranges import is_older, numbers, order
from gpu.operands import TESTS, VALIDATOR
from gpu.resources import is_gpu_resource
from gpu.resources.names import Vendor, vendor_of
from gpu.versions import version_of
from health.stack.causes.base import Signs

FactsOfNode = Mapping[str, str]
Premise = Callable[[Signs, FactsOfNode], bool]
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


def old_driver(signs: Signs, facts: FactsOfNode) -> bool:
    """The node's driver is older than the program needs. CUDA says so where it finds no driver, too."""
    needed = _needed(signs, facts)
    return not signs.runs_version or not needed or is_older(signs.runs_version, needed)


def driver_new_enough(signs: Signs, facts: FactsOfNode) -> bool:
    """The node's driver is known to suffice."""
    return bool(signs.runs_version) and not old_driver(signs, facts)


def driver_is_another(signs: Signs, facts: FactsOfNode) -> bool:
    """The container is known to see another driver than the node runs."""
    runs, seen, cuda = signs.runs_version, facts.get("seen_driver"), facts.get("seen_cuda")
    if not runs:
        return False
    if seen:
        return order(seen) != order(runs)
    return cuda is not None and cuda.isdecimal() and int(cuda) // 1000 < _cuda_of(runs)


def kernel_is_another(signs: Signs, facts: FactsOfNode) -> bool:
    """The named kernel is known to be another than the node runs."""
    return bool(signs.kernel and facts.get("for_kernel")) and facts["for_kernel"] != signs.kernel


def fails_again(signs: Signs, _: FactsOfNode) -> bool:
    """The container fails at each start: what only its first start can have is not the reason. One end tells nothing,
    since the container may have run for weeks after it."""
    return signs.pod is not None and signs.pod.restarts > 1 and signs.pod.reason == "CrashLoopBackOff"


def asks_for_gpus(signs: Signs) -> bool:
    """The pod is known to ask for GPUs."""
    return any(map(is_gpu_resource, signs.asks))


def asks_for_amd(signs: Signs, _: FactsOfNode) -> bool:
    """The pod is known to ask for GPUs of AMD."""
    return Vendor.AMD in map(vendor_of, signs.asks)


def memory_is_taken(_: Signs, facts: FactsOfNode) -> bool:
    """Less than half of the GPU's memory is free, as "0.41/79.18 GiB" says."""
    free, _slash, whole = facts.get("free", "").partition("/")
    amounts = [numbers_in[0] for part in (free, whole) if (numbers_in := _NUMBER.findall(part))]
    return len(amounts) == 2 and float(amounts[0]) < float(amounts[1]) / 2


def has_no_memory_limit(signs: Signs, _: FactsOfNode) -> bool:
    """The container that ended is known to have no memory limit: its node was short of memory."""
    return signs.pod is not None and signs.pod.memory_limit_bytes == 0


def had_ended_well(signs: Signs, _: FactsOfNode) -> bool:
    """The containers of a pod that the kubelet refused are known to have ended with 0."""
    return signs.pod is not None and signs.pod.had_ended_well


def _cuda_of(driver: str) -> int:
    """Returns the newest major version of CUDA that a driver runs. 0: unknown."""
    known = (numbers(each.cuda.since)[0] for each in the_matrix().cuda if not is_older(driver, each.driver))
    return max(known, default=0)


def _needed(signs: Signs, facts: FactsOfNode) -> str:
    """Returns the driver that is needed: for the named version, the test's, or else the newest CUDA."""
    matrix, cuda = the_matrix(), facts.get("needs_cuda")
    if driver := facts.get("needs_driver"):
        return driver
    floors = [each.driver for each in matrix.cuda if not cuda or cuda in each.cuda]
    if signs.pod and signs.operand in (*TESTS, VALIDATOR):
        release = version_of(signs.pod.image).removeprefix("v")
        shipped = next((each.driver for each in matrix.releases if each.version == release), matrix.newest.driver)
        floors = [floor for floor in floors if not is_older(shipped, floor)]
    return max(floors, key=order, default="")


PREMISES: Mapping[str, Premise] = {
    "old driver": old_driver,
    "driver new enough": driver_new_enough,
    "driver is another": driver_is_another,
    "kernel is another": kernel_is_another,
    "container fails again": fails_again,
    "pod asks for GPUs of AMD": asks_for_amd,
    "GPU memory is taken": memory_is_taken,
    "container without memory limit": has_no_memory_limit,
    "containers had ended well": had_ended_well,
    "node of AMD": lambda signs, _: signs.vendor == Vendor.AMD,
    "node of Intel": lambda signs, _: signs.vendor == Vendor.INTEL,
    "node not of Habana": lambda signs, _: signs.vendor != Vendor.HABANA,  # Ascend's library is called HCCL, too
}
