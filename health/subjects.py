"""The subject of a finding: the name and identity of a GPU, and the page about it. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from health.telemetry.snapshot import GpuDevice

# By rule: address of a finding's object, from its facts. Apps above register theirs.
PAGES: dict[str, Callable[[Mapping[str, Any]], str]] = {}
LONGEST = 300  # characters
SLICE = ", slice "  # separator between the names of a board and its slice


def name_of(device: GpuDevice, *, by_uuid: bool = False) -> str:
    """Returns the display name. `by_uuid` means that another board has the GPU's number now."""
    board = f"GPU {device.uuid}" if device.index is None or by_uuid else f"GPU {device.index}"
    part = f"{SLICE}{device.gi_id}{f' ({device.profile})' if device.profile else ''}" if device.gi_id else ""
    return f"{board} of {device.node_name}{part}"


def identity_of(subject: str, gpu_uuid: str) -> str:
    """A board by its UUID, which it keeps where another gets its number. `gpu_uuid` blank: it is none."""
    return f"{gpu_uuid}{SLICE}{subject.partition(SLICE)[2]}" if gpu_uuid else subject
