"""How much a node offers, by kind.

A board has at most seven compute slices (NVIDIA's MIG user guide), so that the slices tell how many boards are cut at
least. A device plugin that was not restarted after that goes on naming those as whole (gpu-operator #637).
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
    whole: int | None  # None: no resource of whole GPUs is named
    slices: int = 0
    shares: int = 0


def count(amounts: Mapping[str, int], layout: Layout) -> Counts:
    """`amounts`: by resource. A GPU that a device plugin and a DRA driver both offer is one GPU."""
    totals: dict[tuple[ResourceKind, bool], int] = {}
    for name, amount in amounts.items():
        of = layout.way(name).kind, is_dra(name)
        totals[of] = totals.get(of, 0) + amount
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
    """How many of the GPUs that are named as whole are cut."""
    if layout.boards is None or layout.way(GPU).kind is not ResourceKind.WHOLE:
        return 0
    slices = sum(amount * compute_slices(layout.way(name).profile) for name, amount in amounts.items())
    cut = -(-slices // COMPUTE_SLICES)
    return max(0, amounts.get(GPU, 0) - max(0, layout.boards - cut))


def compute_slices(profile: str) -> int:
    """Of which it is one: 3 of 3g.40gb, 1 of 1c.3g.40gb. 0: no MIG profile."""
    found = MIG_PROFILE.match(profile)
    return int(found[1]) if found else 0


def count_taken(amounts: Mapping[str, int], layout: Layout) -> Counts:
    """What pods have: a GPU that a device plugin gave out and one that a DRA driver did are two."""
    each = [count({name: amount}, layout) for name, amount in amounts.items()]
    whole = [counts.whole for counts in each if counts.whole is not None]
    shares, slices = sum(counts.shares for counts in each), sum(counts.slices for counts in each)
    return Counts(sum(whole) if whole else None, slices, shares)


def whole_gpus(amounts: Mapping[str, int], layout: Layout) -> int:
    """Of what pods have. Slices and shares are none, whatever name the device plugin offers them by."""
    return count_taken(amounts, layout).whole or 0


def most_by_labels(labels: Mapping[str, str], layout: Layout) -> dict[str, int]:
    """How much of a resource can be there at most, as the labels count its GPUs or slices and their users.

    A resource is not in it where its labels count nothing.
    """
    most: dict[str, int] = {}
    for name, way in layout.ways.items():
        units = count_in(labels.get(f"{name.removesuffix(SHARED)}.count"))
        if units is not None and (way.replicas or not way.sharing):
            most[name] = units * (way.replicas or 1)
    return most
