"""The number of physical GPUs of a node by use. Pure.

A GPU has exactly one use, so uses add up to the total. Slices and shares count as GPUs where the number per GPU is
known; labels give the rest.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum

from gpu import labels as keys
from gpu.resources.clouds import boards_in_labels
from gpu.resources.layout import MPS, TIME_SLICING, Layout, Way
from gpu.resources.mig_slices import slices_of_a_board
from gpu.resources.names import ResourceKind, Vendor, vendor_of
from gpu.resources.offer import COMPUTE_SLICES, compute_slices, count


class Use(StrEnum):
    WHOLE = "whole"  # one user
    MIG = "mig"  # cut by NVIDIA's MIG; its slices may be shared
    PARTITIONED = "partitioned"  # cut by AMD's driver
    TIME_SLICING = "time_slicing"
    MPS = "mps"
    SHARED = "shared"  # shared in another or unknown way
    VIRTUAL = "virtual"  # for virtual machines
    NOT_OFFERED = "not_offered"  # counted by a label, but offered to no pod


TITLES: dict[Use, str] = {
    Use.WHOLE: "whole",
    Use.MIG: "MIG",
    Use.PARTITIONED: "partitioned",
    Use.TIME_SLICING: "time-slicing",
    Use.MPS: "MPS",
    Use.SHARED: "shared otherwise",
    Use.VIRTUAL: "for virtual machines",
    Use.NOT_OFFERED: "not offered",
}
TOTAL = "physical_gpus"
COLUMNS: dict[Use, str] = {use: f"physical_{use}" for use in Use}
COUNTED_AT_MOST = 128  # per node; larger label values are wrong
VGPU_TYPE = r"\d+(?:_\d+)?[ABCQ](?:ME)?$"
Uses = Mapping[Use, int]


def uses_of(
    labels: Mapping[str, str], amounts: Mapping[str, int], layout: Layout, *, product: str, registered: int = 0
) -> Uses:
    """Returns the GPUs by use. Empty: the number is unknown. `registered` counts boards registered by a device
    plugin."""
    uses = Counter({Use.WHOLE: count(amounts, layout).whole or 0})
    for name, amount in amounts.items():
        way = layout.way(name)
        if way.kind is ResourceKind.SHARE and not way.profile:
            uses[_sharing(way)] += -(-amount // way.replicas) if way.replicas else 0
        elif way.kind is ResourceKind.VIRTUAL:
            uses[Use.VIRTUAL] += 0 if _is_vgpu(name) else amount
        elif way.profile and vendor_of(name) is Vendor.AMD and layout.parts:
            uses[Use.PARTITIONED] += -(-amount // layout.parts)
    uses[Use.MIG] += _boards_under_mig(amounts, layout, product, others=uses.total())
    rest = _counted(labels, layout, registered) - uses.total()
    if rest > 0:
        uses[_use_of_the_rest(amounts, layout)] += rest
    return {use: number for use, number in uses.items() if number > 0}


def boards_of(amounts: Mapping[str, int], layout: Layout, *, product: str) -> int:
    """Returns the minimum number of physical GPUs behind these amounts. 0: unknown."""
    return sum(uses_of({}, amounts, replace(layout, boards=None), product=product).values())


def columns_of(uses: Uses) -> dict[str, int | None]:
    return {TOTAL: sum(uses.values()) or None, **{column: uses.get(use, 0) for use, column in COLUMNS.items()}}


def known_gpus(number: int, *, uncounted: int) -> int | None:
    """Returns a sum over nodes. None: there are GPU nodes, but none with a known number."""
    return None if uncounted and not number else number


def uses_in(row: Mapping[str, int | None]) -> Uses:
    return {use: number for use, column in COLUMNS.items() if (number := row.get(column) or 0)}


def _sharing(way: Way) -> Use:
    return {TIME_SLICING: Use.TIME_SLICING, MPS: Use.MPS}.get(way.sharing, Use.SHARED)


def _is_vgpu(name: str) -> bool:
    """Tells whether a type splits a board, as NVIDIA_A10-12Q or AMD's virtual functions; a whole board has its
    chip's name."""
    kind = name.partition("/")[2]
    return kind in ("vgpu", "gpu_vf") or bool(re.search(rf"[-_]{VGPU_TYPE}", kind))


def _boards_under_mig(amounts: Mapping[str, int], layout: Layout, product: str, *, others: int) -> int:
    """Returns the boards under MIG: the label's rest, else the fewest that can hold the slices."""
    slices = {name: amount for name, amount in amounts.items() if amount and _is_mig(name, layout.way(name))}
    if not slices:
        return 0
    if layout.boards is not None and layout.boards > others:
        return layout.boards - others
    if len(slices) == 1:
        ((name, amount),) = slices.items()
        way = layout.way(name)
        of_one = slices_of_a_board(way.profile, product) * (way.replicas or 1)
        return -(-amount // of_one) if of_one else 0
    parts = sum(
        amount * compute_slices(layout.way(name).profile) / (layout.way(name).replicas or 1)
        for name, amount in slices.items()
    )
    return math.ceil(parts / COMPUTE_SLICES)


def _is_mig(name: str, way: Way) -> bool:
    return bool(way.profile) and vendor_of(name) is Vendor.NVIDIA


def _counted(labels: Mapping[str, str], layout: Layout, registered: int) -> int:
    """Returns the number from labels or registration. Under the MIG strategy `single` NVIDIA's label counts slices."""
    number = keys.count_in(labels.get(keys.GPU_COUNT)) if layout.mig_strategy != "single" else None
    number = number or boards_in_labels(labels) or keys.count_in(labels.get(keys.INTEL_COUNT)) or registered
    return min(number, COUNTED_AT_MOST)


def _use_of_the_rest(amounts: Mapping[str, int], layout: Layout) -> Use:
    """Returns the use of labelled boards that no slice or share accounts for."""
    ways = {name: layout.way(name) for name in {*layout.ways, *amounts}}
    if any(_is_mig(name, way) for name, way in ways.items()):
        return Use.MIG
    if any(way.profile for way in ways.values()):
        return Use.PARTITIONED
    shared = next((way for _, way in sorted(ways.items()) if way.sharing), None)
    if shared is not None:
        return _sharing(shared)
    return Use.VIRTUAL if any(way.is_virtual for way in ways.values()) else Use.NOT_OFFERED
