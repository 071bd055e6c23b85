"""What is new about an object: against what was seen of it last, and against its row. Pure."""

from datetime import datetime
from typing import Any

import msgspec

Row = dict[str, Any]
# Labels that vanish while the driver is replaced: gpu-feature-discovery takes its own away when it is stopped.
KEPT_WHILE_SILENT = ("driver_version", "gpu_product", "gpu_memory_mib")


def fingerprint(row: Row) -> int:
    """Equal for equal rows. A heartbeat that changes nothing we keep does not change it."""
    return hash(msgspec.json.encode(row))


def remember(old: Row | None, new: Row, *, now: datetime) -> Row:
    """The node's row with what earlier looks told: its GPUs and driver are the same while nobody names them."""
    before = old or {}
    row = dict(new)
    if row["is_gpu_node"]:
        row |= {key: before.get(key) for key in KEPT_WHILE_SILENT if not row[key] and before.get(key)}
    row["driver_unknown_since"] = None
    if row["is_gpu_node"] and not new["driver_version"]:
        row["driver_unknown_since"] = before.get("driver_unknown_since") or now
    row["gpu_expected"] = max(
        (count for count in (before.get("gpu_expected"), row["gpu_capacity"]) if count), default=None
    )
    return row


def changes(old: Row | None, new: Row) -> Row:
    """The columns that differ. All of them where there was no row."""
    if old is None:
        return new
    return {key: value for key, value in new.items() if old.get(key) != value}
