"""The device lists that a pod sets by hand, compared with the GPUs that it got. Pure.

docs.nvidia.com/cuda/cuda-programming-guide, CUDA environment variables: CUDA numbers the GPUs of a container from 0,
and ignores everything behind an invalid entry. NVIDIA/nvidia-container-toolkit #27: the device plugin sets
NVIDIA_VISIBLE_DEVICES itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

NO_LIST = "(no list of devices)"  # as the mirror stores any other value
NONE_SEEN = frozenset({"", "void", "none"})


@dataclass(frozen=True)
class DeviceList:
    container: str
    variable: str  # NVIDIA_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES
    devices: str | None  # None: it comes from a reference, which is not read


@dataclass(frozen=True)
class GotGpus:
    """The GPUs of a container. `uuids` are empty if nothing reports them."""

    number: int | None  # None: unknown
    uuids: Sequence[str] = ()


def difference(given: DeviceList, got: GotGpus) -> str | None:
    """Returns how the list differs from the allocation. Blank: it does not. None: unknown."""
    if given.devices is None:
        return None
    if given.devices == NO_LIST:
        return "its value is not a list of devices"
    entries = [each.strip() for each in given.devices.split(",")]
    if given.variable.startswith("CUDA_"):
        return _cuda_difference(entries, got)
    return _runtime_difference(entries, got)


def _runtime_difference(entries: Sequence[str], got: GotGpus) -> str | None:
    if NONE_SEEN.issuperset(entries):
        return "it hides every GPU from the container" if got.number != 0 else ""
    if got.number == 0:
        return "the container requests no GPU, and uses GPUs that nobody allocated to it"
    if not got.uuids:
        return None
    return "" if set(entries) == set(got.uuids) else "the device plugin allocated other GPUs"


def _cuda_difference(entries: Sequence[str], got: GotGpus) -> str | None:
    if NONE_SEEN.issuperset(entries) or entries[0].startswith("-"):
        return "it hides every GPU from CUDA"
    if got.number is None:
        return None
    visible = 0
    for entry in entries:
        is_there = _is_there(entry, got)
        if is_there is None:
            return None
        if not is_there:
            return f"{entry} is not a GPU of the pod, and CUDA ignores this and all later entries"
        visible += 1
    return f"CUDA sees only {visible} of its {got.number} GPUs" if visible < got.number else ""


def _is_there(entry: str, got: GotGpus) -> bool | None:
    if entry.isdecimal():
        return int(entry) < (got.number or 0)
    return any(uuid.startswith(entry) for uuid in got.uuids) if got.uuids else None
