"""DRA offers in a node's row: they count, name and version its GPUs, with or without labels. Pure."""

from collections.abc import Iterator

from fleet.allocation.devices import Offered
from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.rows.gpus import amount_columns, gpu_columns, physical_columns
from fleet.observer.mirror.rows.node import driver_version_in
from gpu.resources import Layout, Unhealthy, unhealthy_rows, uses_in, vendor_of
from gpu.resources.names import is_dra


def merge_offers(row: Columns, offered: Offered | None) -> Columns:
    """Merges the node's row with the offers of ResourceSlices. None: no offers."""
    if offered is None:
        return row
    capacity, allocatable = row["capacity"] | offered.capacity, row["allocatable"] | offered.allocatable
    vendor = vendor_of(offered.devices[0].driver) if offered.devices else None
    return {
        **row,
        "is_gpu_node": row["is_gpu_node"] or bool(offered.devices),
        "gpu_vendor": row["gpu_vendor"] or (vendor.value if vendor else ""),
        "gpu_product": row["gpu_product"] or offered.first("product") or "",
        "gpu_memory_mib": row["gpu_memory_mib"] or _board_memory(offered),
        "driver_version": row["driver_version"] or offered.first("driver_version") or "",
        "unhealthy_gpus": [*row["unhealthy_gpus"], *unhealthy_rows(_unhealthy(offered))],
        **amount_columns(capacity, allocatable, {}, Layout.read(row["layout"])),
        **physical_columns(max(offered.uses, uses_in(row), key=lambda uses: sum(uses.values()))),
    }


def _unhealthy(offered: Offered) -> Iterator[Unhealthy]:
    """Yields devices that their driver taints or reports unhealthy."""
    for device in offered.devices:
        if device.taints or not device.is_healthy:
            says = (
                f"taints it {', '.join(device.taints)}" if device.taints else "reports it as unhealthy (healthy=false)"
            )
            reason = f"its DRA driver {says}"
            called = device.name if device.index is None else f"GPU {device.index}"
            yield Unhealthy(called, reason, device.index, device.board)


def unfolded(old: Columns) -> Columns:
    """Returns the node's row without DRA offers, rebuilt from stored labels and amounts."""
    labels = old["labels"]
    capacity, allocatable = (_plugin_amounts(old[name]) for name in ("capacity", "allocatable"))
    return {
        **old,
        **gpu_columns(labels, old["annotations"], capacity, allocatable, old["taints"]),
        "driver_version": driver_version_in(labels),
    }


def _plugin_amounts(amounts: dict[str, int]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if not is_dra(name)}


def _board_memory(offered: Offered) -> int | None:
    return next((device.memory_mib for device in offered.boards if device.memory_mib), None)
