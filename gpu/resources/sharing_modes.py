"""Descriptions of MIG, time-slicing, MPS and others, by their isolation.

NVIDIA's MIG user guide (memory, cache and fault isolation); README of k8s-device-plugin, "Shared Access to GPUs";
the MPS documentation, "Volta MPS" and error containment. HAMi: libvgpu.so of Project-HAMi/HAMi-core, which its
plugin mounts into each container. gpushare: AliyunContainerService/gpushare-scheduler-extender, issues/219 (no
limits).
"""

from dataclasses import dataclass

from gpu.resources.layout import BY_MEMORY, HAMI, MPS, TIME_SLICING, Way


@dataclass(frozen=True)
class Explanation:
    title: str
    glance: str  # one line
    isolation: str
    memory: str
    users: str


def explain(way: Way) -> Explanation:
    if way.is_virtual:
        return FOR_MACHINES
    if way.sharing == TIME_SLICING:
        return _time_sliced(way)
    if way.sharing == MPS:
        return _mps(way)
    if way.sharing == HAMI:
        return _hami(way)
    if way.sharing == BY_MEMORY:
        return PLACED_BY_MEMORY
    if way.sharing:
        return _shared(way)
    return _explain_slices(way) if way.profile else WHOLE


WHOLE = Explanation(
    "Whole GPUs",
    "Each GPU belongs to one pod only.",
    "Complete: no other pod uses the GPU.",
    "All of the GPU's.",
    "One pod a GPU.",
)


PLACED_BY_MEMORY = Explanation(
    "GPUs placed by memory",
    "Pods request units of GPU memory, and the scheduler places several pods on one GPU.",
    "None: one pod's fault can end all pods on the GPU, and each waits while the others compute.",
    "Counted at scheduling, but not limited: one pod can use all memory.",
    "As many pods as the memory allows. A pod uses one GPU.",
)


FOR_MACHINES = Explanation(
    "Devices for virtual machines",
    "Each device is assigned to a virtual machine: a whole GPU, or a vGPU.",
    "By the virtual machine: it has its own driver, and no pod uses the device.",
    "All memory of the device.",
    "One virtual machine per device.",
)


def _explain_slices(way: Way) -> Explanation:
    if "_nps" in way.profile:
        return _partitioned(way)
    return Explanation(
        "MIG slices",
        "Partitioned by hardware: each slice has its own compute and memory.",
        "By hardware: an error or load in one slice does not affect other slices.",
        "Separate for each slice, with the size of the profile.",
        "One pod a slice.",
    )


def _partitioned(way: Way) -> Explanation:
    """Describes AMD's partitions: dpx_nps1 has two for compute and one memory for both (ROCm/gpu-operator #555,
    ROCm/rccl #1555).
    """
    domains = way.profile.rpartition("nps")[2]
    shared = (
        "all of a GPU's partitions share its whole memory"
        if domains == "1"
        else f"a GPU's memory has {domains} parts, and partitions on the same part share it"
    )
    return Explanation(
        "Partitions",
        f"Compute is partitioned by hardware; {shared}.",
        "Compute is isolated by hardware. Memory is isolated only between its parts.",
        f"Not its own: {shared}.",
        "One pod per partition.",
    )


def _time_sliced(way: Way) -> Explanation:
    return Explanation(
        f"Time-slicing of {_unit_plural(way)}",
        "Pods take turns on the whole GPU, without isolation.",
        "None: one pod's fault can end all pods on the GPU, and each waits while the others compute.",
        "Shared and not limited: one pod can use all memory, and the other pods fail.",
        _users(way),
    )


def _mps(way: Way) -> Explanation:
    part = f"a {way.replicas}th" if way.replicas and way.replicas > 3 else "its part"
    return Explanation(
        f"MPS shares of {_unit_plural(way)}",
        "Pods compute at the same time on parts of the GPU, through one MPS server.",
        "Partial: own address spaces, but a fatal fault can end all pods on the GPU.",
        f"Limited: the MPS server holds each pod to {part} of the memory and of the compute.",
        _users(way),
    )


def _hami(way: Way) -> Explanation:
    return Explanation(
        f"HAMi vGPUs of {_unit_plural(way)}",
        "Pods share the GPU, and a library in each container enforces the pod's request.",
        "Partial: limits by a library in the container, not by hardware; a fatal fault can end all pods on the GPU.",
        "Limited to nvidia.com/gpumem if the pod requests it; otherwise all memory of the GPU.",
        _users(way),
    )


def _shared(way: Way) -> Explanation:
    return Explanation(
        f"Shares of {_unit_plural(way)}",
        "Several pods use one GPU in an unknown way.",
        "Unknown: expect no isolation.",
        "Unknown: expect shared memory without limits.",
        _users(way),
    )


def _unit_plural(way: Way) -> str:
    return "slices" if way.profile else "GPUs"


def _users(way: Way) -> str:
    each = "a slice" if way.profile else "a GPU"
    return f"Up to {way.replicas} pods {each}." if way.replicas else f"Several pods {each}; their number is unknown."
