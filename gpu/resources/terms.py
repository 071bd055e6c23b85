"""Resources as text for people."""

from collections.abc import Iterable, Mapping
from typing import Any

from gpu.resources.layout import BY_MEMORY, HAMI, MPS, TIME_SLICING, Layout, Way
from gpu.resources.names import is_dra
from wording.numbers import count, either

SHARE_WORDS = {TIME_SLICING: "time-slice", MPS: "MPS share", HAMI: "HAMi vGPU", BY_MEMORY: "unit"}
PAIRS = (
    ("gpu_expected", "gpu_allocatable"),
    ("slices_expected", "slices_allocatable"),
    ("shares_expected", "shares_allocatable"),
)


def units_missing(row: Mapping[str, Any]) -> int:
    """Returns how many expected GPUs, slices and shares of a node row are not allocatable."""
    return sum(max(0, (row[expected] or 0) - (row[allocatable] or 0)) for expected, allocatable in PAIRS)


def in_words(number: int, way: Way) -> str:
    """Returns `2 GPUs`, `3 slices 1g.10gb` or `4 time-slices`."""
    if way.is_virtual:
        return count(number, "device") + " for virtual machines"
    if way.sharing:
        of_what = " of GPU memory" if way.sharing == BY_MEMORY else ""
        return count(number, SHARE_WORDS.get(way.sharing, "share")) + of_what
    return f"{count(number, 'slice')} {way.profile}" if way.profile else count(number, "GPU")


def missing_in_words(expected: Mapping[str, int], allocatable: Mapping[str, int], layout: Layout) -> str:
    """Returns the missing units: `1 GPU (4 of its time-slices)`. Blank: none."""
    lost = {name: amount - allocatable.get(name, 0) for name, amount in sorted(expected.items())}
    parts = [_missing_carriers(number, layout.way(name)) for name, number in lost.items() if number > 0]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def layout_in_words(text: str, offered: Iterable[str] = ()) -> str:
    """Returns a node's layout: `time-slices of whole GPUs, 4 each`, `slices 1g.10gb and slices 3g.40gb`.

    `offered` names its resources, for a blank layout: `whole GPUs by DRA`.
    """
    layout = Layout.read(text)
    named = {} if layout else {name: layout.way(name) for name in offered}
    ways = sorted({*layout.ways.values(), *named.values()}, key=str)
    by_dra = " by DRA" if any(map(is_dra, named)) else ""
    cut = [way for way in ways if way.profile or way.sharing] or ways
    return " and ".join(_way_in_words(way) for way in cut) + by_dra or "their resource names say"


def _way_in_words(way: Way) -> str:
    if way.is_virtual:
        return "devices for virtual machines"
    unit = f"slices {way.profile}" if way.profile else "whole GPUs"
    if not way.sharing:
        return unit
    each = f", {way.replicas} each" if way.replicas else ""
    return f"{SHARE_WORDS.get(way.sharing, 'share')}s of {unit}{each}"


def _missing_carriers(number: int, way: Way) -> str:
    """Returns missing carriers if all shares of some GPUs are missing, since then the GPU is the fault."""
    if not way.sharing or not way.replicas or number % way.replicas:
        return in_words(number, way)
    carriers = number // way.replicas
    whose = either(carriers, "its", "their")
    return f"{in_words(carriers, Way(way.profile))} ({number} of {whose} {SHARE_WORDS.get(way.sharing, 'share')}s)"
