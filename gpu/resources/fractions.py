"""The physical GPUs behind requested amounts, for charging each GPU once. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu.resources.layout import Layout, Way
from gpu.resources.mig_slices import compute_slices_of_a_board
from gpu.resources.names import ResourceKind
from gpu.resources.offer import compute_slices


@dataclass(frozen=True)
class GpuFraction:
    gpus: float  # physical GPUs, computed from the resources
    is_shared: bool  # whole GPUs with other users: who is there decides the share


def fraction_of(amounts: Mapping[str, int], layout: Layout, *, product: str) -> GpuFraction:
    """Returns the physical GPUs behind these amounts. Without amounts, as of a claim, they are shared."""
    ways = [(layout.way(name), number) for name, number in amounts.items()]
    return GpuFraction(
        sum(number * _gpus(way, layout, product) for way, number in ways),
        is_shared=not ways or any(way.kind is ResourceKind.SHARE and not way.profile for way, _ in ways),
    )


def _gpus(way: Way, layout: Layout, product: str) -> float:
    users = way.replicas or 1
    if not way.profile:
        return 1 / users
    slices = compute_slices(way.profile)
    return (slices / compute_slices_of_a_board(product) if slices else 1 / (layout.parts or 1)) / users
