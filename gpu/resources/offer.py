"""The number of GPUs, slices and shares that a node offers.

A board has at most seven compute slices (NVIDIA's MIG user guide), so slices give a minimum of cut boards. A device
plugin that was not restarted still reports those as whole (gpu-operator #637).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpu.labels import count_in
from gpu.resources.layout import Layout
from gpu.resources.names import GPU, SHARED, ResourceKind, is_dra

COMPUTE_SLICES = 7
MIG_PROFILE = re.compile(r"^(\d)[gc]\.")


@dataclass(frozen=True)
class Counts:
    whole: int | None  # None: no resource of whole GPUs
    slices: int = 0
    shares: int = 0


def count(amounts: Mapping[str, int], layout: Layout) -> Counts:
    """Counts amounts by resource. A GPU offered by device plugin and DRA driver counts once."""
    totals: dict[tuple[ResourceKind, bool], int] = {}
    for name, amount in amounts.items():
        key = layout.way(name).kind, is_dra(name)
        totals[key] = totals.get(key, 0) + amount
    if (ResourceKind.WHOLE, False) in totals:
        totals[ResourceKind.WHOLE, False] -= only_named(amounts, layout)
    return Counts(
        whole=max(
            (totals[ResourceKind.WHOLE, dra] for dra in (False, True) if (ResourceKind.WHOLE, dra) in totals),
            default=None,
        ),
        slices=max(totals.get((ResourceKind.SLICE, False), 0), totals.get((ResourceKind.SLICE, True), 0)),
        shares=totals.get((ResourceKind.SHARE, False), 0),
    )


def only_named(amounts: Mapping[str, int], layout: Layout) -> int:
    """Returns how many GPUs reported as whole are cut."""
    if layout.boards is None or layout.way(GPU).kind is not ResourceKind.WHOLE:
        return 0
    slices = sum(amount * compute_slices(layout.way(name).profile) for name, amount in amounts.items())
    cut = -(-slices // COMPUTE_SLICES)
    return max(0, amounts.get(GPU, 0) - max(0, layout.boards - cut))


def compute_slices(profile: str) -> int:
    """Returns the compute slices of a profile: 3 for 3g.40gb, 1 for 1c.3g.40gb. 0: no MIG profile."""
    match = MIG_PROFILE.match(profile)
    return int(match[1]) if match else 0


def count_taken(amounts: Mapping[str, int], layout: Layout) -> Counts:
    """Counts the units of pods. GPUs from a device plugin and from a DRA driver count separately."""
    parts = [count({name: amount}, layout) for name, amount in amounts.items()]
    whole = [counts.whole for counts in parts if counts.whole is not None]
    shares, slices = sum(counts.shares for counts in parts), sum(counts.slices for counts in parts)
    return Counts(sum(whole) if whole else None, slices, shares)


def whole_gpus(amounts: Mapping[str, int], layout: Layout) -> int:
    """Returns the whole GPUs of pods, without slices and shares."""
    return count_taken(amounts, layout).whole or 0


def most_by_labels(labels: Mapping[str, str], layout: Layout) -> dict[str, int]:
    """Returns the maximum of each resource, from labels with counts and users.

    Omits resources without such labels.
    """
    most: dict[str, int] = {}
    for name, way in layout.ways.items():
        units = count_in(labels.get(f"{name.removesuffix(SHARED)}.count"))
        if units is not None and (way.replicas or not way.sharing):
            most[name] = units * (way.replicas or 1)
    return most
