"""Comparison of an object with its last observation and its row. Pure."""

from datetime import datetime

import msgspec

from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.rows.gpus import amount_columns, layout_columns, physical_columns
from fleet.states.node import RECONFIGURED_WITHIN, RECONFIGURING
from gpu import labels as keys
from gpu.resources import Layout, Uses, expect, most_by_labels, registered_in, uses_in, uses_of
from gpu.resources.expected_counts import Since
from gpu.resources.layout import UNKNOWN_SHARING
from gpu.resources.names import is_dra
from kube.structs import Seen

ENCODER = msgspec.json.Encoder()
# Labels that disappear during a driver change: gpu-feature-discovery removes its own when it stops.
KEPT_WHILE_SILENT = ("driver_version", "gpu_product", "gpu_memory_mib", "gpu_vendor")


def fingerprint(row: Columns) -> int:
    return hash(ENCODER.encode(row))


def likeness(seen: Seen) -> int:
    """Returns a hash of the decoded object without its resource version."""
    unversioned = msgspec.structs.replace(seen.metadata, resource_version="")
    return hash(ENCODER.encode(msgspec.structs.replace(seen, metadata=unversioned)))


def remember(old: Columns | None, new: Columns, *, now: datetime) -> Columns:
    """Merges a node's row with remembered values: GPUs and driver stay while nothing reports them."""
    before = old or {}
    row = dict(new)
    row["is_gpu_node"] = row["is_gpu_node"] or bool(before.get("expected"))
    if row["is_gpu_node"]:
        row |= {key: before.get(key) for key in KEPT_WHILE_SILENT if not row[key] and before.get(key)}
        row |= _domain(before, row)
    row["driver_unknown_since"] = None
    if row["is_gpu_node"] and not new["driver_version"] and _needs_driver_label(row):
        row["driver_unknown_since"] = before.get("driver_unknown_since") or now
    return row | _boot(before, row, now=now) | _resources(old, row) | _reconfiguring(before, row, now=now)


def _boot(before: Columns, row: Columns, *, now: datetime) -> Columns:
    """Returns boot id and time. A kubelet that reports no boot id has not rebooted."""
    was, boot_id = before.get("boot_id", ""), row["boot_id"]
    is_another = bool(was and boot_id and was != boot_id)
    return {"boot_id": boot_id or was, "booted_at": now if is_another else before.get("booted_at")}


def _reconfiguring(before: Columns, row: Columns, *, now: datetime) -> Columns:
    """Returns since when the MIG manager has been working on this order; no label has the start."""
    if row["mig_config_state"] not in RECONFIGURING:
        return {"mig_changing_since": None, "mig_is_overdue": False}
    goes_on = before.get("mig_config_state") in RECONFIGURING and before["mig_config"] == row["mig_config"]
    since = (before["mig_changing_since"] if goes_on else None) or now
    return {"mig_changing_since": since, "mig_is_overdue": now - since >= RECONFIGURED_WITHIN}


def _domain(before: Columns, row: Columns) -> Columns:
    """Returns the NVLink domain. It is remembered while gpu-feature-discovery is silent."""
    is_silent = not row["labels"].get(keys.GPU_PRODUCT)
    return {"nvlink_domain": before["nvlink_domain"]} if is_silent and before.get("nvlink_domain") else {}


def _needs_driver_label(row: Columns) -> bool:
    """Tells whether a missing label means an unknown driver: NVIDIA nodes have one, other vendors only some."""
    return row["gpu_vendor"] in ("", "nvidia") or bool(row["driver_version"])


def _resources(old: Columns | None, row: Columns) -> Columns:
    text, since = _layout(old, row)
    layout = Layout.read(text)
    most = most_by_labels(row["labels"], layout)
    before = old["expected"] if old else {}
    expected = expect(before, row["capacity"], row["allocatable"], most, since=since)
    amounts = amount_columns(row["capacity"], row["allocatable"], expected, layout)
    return {
        **layout_columns(layout, expected),
        "layout": text,
        **amounts,
        **_physical(old, row, expected, layout, since),
    }


def _physical(old: Columns | None, row: Columns, expected: dict[str, int], layout: Layout, since: Since) -> Columns:
    """Returns the physical GPUs. A missing label or a lost board does not lower them under the same layout."""
    uses = uses_in(row) if _is_counted_by_dra(row) else _uses_of_row(row, expected, layout)
    before = uses_in(old) if old and since is Since.SAME else {}
    return physical_columns(before if sum(before.values()) > sum(uses.values()) else uses)


def _is_counted_by_dra(row: Columns) -> bool:
    """Tells whether DRA slices name each board, including those for virtual machines."""
    return any(map(is_dra, row["capacity"]))


def _uses_of_row(row: Columns, expected: dict[str, int], layout: Layout) -> Uses:
    registered = len(registered_in(row["annotations"]))
    return uses_of(row["labels"], expected, layout, product=row["gpu_product"], registered=registered)


def _layout(old: Columns | None, row: Columns) -> tuple[str, Since]:
    said = row["layout"]
    if old is None:
        return said, Since.FIRST
    known = old["layout"]
    if not said or said == known or (known and row["mig_config_state"] in RECONFIGURING):
        return known, Since.SAME
    was, now = Layout.read(known), Layout.read(said)
    if now.sharing == UNKNOWN_SHARING and not _has_more(old, row, now):
        return known, Since.SAME  # same amount, fewer boards counted: a board is lost, not shared
    if not known and now.is_plain:
        return said, Since.SAME  # the labels now confirm the resource names
    if now.ways.items() <= was.ways.items() and now.lacks_boards_of(was):
        return known, Since.SAME  # slices disappeared with their board; no new layout
    if was.ways != now.ways:
        return said, Since.RECUT
    if was.config == now.config:
        return said, Since.SAME
    return (said, Since.RECUT) if _is_carried_out(old, row, now) else (known, Since.SAME)


def _has_more(old: Columns, row: Columns, layout: Layout) -> bool:
    return any(row["capacity"].get(name, 0) > old["expected"].get(name, 0) for name in layout.ways)


def _is_carried_out(old: Columns, row: Columns, layout: Layout) -> bool:
    """Tells whether the current order was carried out. Its label precedes the MIG manager's work."""
    if row["mig_config_state"] == "failed":
        return False
    return old["mig_config"] == row["mig_config"] or _counts_differ(old["expected"], row["labels"], layout)


def _counts_differ(expected: dict[str, int], labels: dict[str, str], layout: Layout) -> bool:
    counted = most_by_labels(labels, layout)
    return any(expected.get(name, 0) != number for name, number in counted.items() if layout.way(name).profile)
