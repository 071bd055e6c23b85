"""What is new about an object: against what was seen of it last, and against its row. Pure."""

from datetime import datetime

import msgspec

from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.rows.gpus import amount_columns, layout_columns, physical_columns
from fleet.states.node import RECONFIGURED_WITHIN, RECONFIGURING
from gpu import labels as keys
from gpu.resources import Layout, Uses, expect, most_by_labels, registered_in, uses_in, uses_of
from gpu.resources.expected_counts import Since
from gpu.resources.layout import HOW_NOT_SAID
from gpu.resources.names import is_dra
from kube.structs import Seen

ENCODER = msgspec.json.Encoder()
# Labels that vanish while the driver is replaced: gpu-feature-discovery takes its own away when it is stopped.
KEPT_WHILE_SILENT = ("driver_version", "gpu_product", "gpu_memory_mib", "gpu_vendor")


def fingerprint(row: Columns) -> int:
    """Equal for equal rows. A heartbeat that changes nothing we keep does not change it."""
    return hash(ENCODER.encode(row))


def likeness(seen: Seen) -> int:
    """Equal for objects of which all that is read is equal, whatever their resource versions."""
    unversioned = msgspec.structs.replace(seen.metadata, resource_version="")
    return hash(ENCODER.encode(msgspec.structs.replace(seen, metadata=unversioned)))


def remember(old: Columns | None, new: Columns, *, now: datetime) -> Columns:
    """The node's row with what earlier looks told: its GPUs and driver are the same while nobody names them."""
    before = old or {}
    row = dict(new)
    row["is_gpu_node"] = row["is_gpu_node"] or bool(before.get("expected"))
    if row["is_gpu_node"]:
        row |= {key: before.get(key) for key in KEPT_WHILE_SILENT if not row[key] and before.get(key)}
        row |= _domain(before, row)
    row["driver_unknown_since"] = None
    if row["is_gpu_node"] and not new["driver_version"] and _names_its_driver(row):
        row["driver_unknown_since"] = before.get("driver_unknown_since") or now
    return row | _boot(before, row, now=now) | _resources(old, row) | _reconfiguring(before, row, now=now)


def _boot(before: Columns, row: Columns, *, now: datetime) -> Columns:
    """A kubelet that says none, for once, has not booted."""
    was, boot_id = before.get("boot_id", ""), row["boot_id"]
    is_another = bool(was and boot_id and was != boot_id)
    return {"boot_id": boot_id or was, "booted_at": now if is_another else before.get("booted_at")}


def _reconfiguring(before: Columns, row: Columns, *, now: datetime) -> Columns:
    """Since when the MIG manager is at work on this order: no label says when it began."""
    if row["mig_config_state"] not in RECONFIGURING:
        return {"mig_changing_since": None, "mig_is_overdue": False}
    goes_on = before.get("mig_config_state") in RECONFIGURING and before["mig_config"] == row["mig_config"]
    since = (before["mig_changing_since"] if goes_on else None) or now
    return {"mig_changing_since": since, "mig_is_overdue": now - since >= RECONFIGURED_WITHIN}


def _domain(before: Columns, row: Columns) -> Columns:
    """The NVLink domain is a label of gpu-feature-discovery too; while that speaks, an absent one means none."""
    is_silent = not row["labels"].get(keys.GPU_PRODUCT)
    return {"nvlink_domain": before["nvlink_domain"]} if is_silent and before.get("nvlink_domain") else {}


def _names_its_driver(row: Columns) -> bool:
    """NVIDIA's do, through gpu-feature-discovery. Of other vendors only some, so that silence means nothing."""
    return row["gpu_vendor"] in ("", "nvidia") or bool(row["driver_version"])


def _resources(old: Columns | None, row: Columns) -> Columns:
    """How the GPUs are cut and shared, and how many of each resource are expected under that."""
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
    """The GPUs as boards. A label may be away, and a board lost, while nobody cut or shared them anew."""
    uses = uses_in(row) if _is_counted_by_dra(row) else _uses(row, expected, layout)
    before = uses_in(old) if old and since is Since.SAME else {}
    return physical_columns(before if sum(before.values()) > sum(uses.values()) else uses)


def _is_counted_by_dra(row: Columns) -> bool:
    """Its slices name each board, also those that only virtual machines may have."""
    return any(map(is_dra, row["capacity"]))


def _uses(row: Columns, expected: dict[str, int], layout: Layout) -> Uses:
    registered = len(registered_in(row["annotations"]))
    return uses_of(row["labels"], expected, layout, product=row["gpu_product"], registered=registered)


def _layout(old: Columns | None, row: Columns) -> tuple[str, Since]:
    """The layout that holds now, and whether what was expected still is."""
    said = row["layout"]
    if old is None:
        return said, Since.FIRST
    known = old["layout"]
    if not said or said == known or (known and row["mig_config_state"] in RECONFIGURING):
        return known, Since.SAME
    was, now = Layout.read(known), Layout.read(said)
    if now.sharing == HOW_NOT_SAID and not _has_more(old, row, now):
        return known, Since.SAME  # as many as ever, and fewer boards are counted: one is lost, nobody shares
    if not known and now.is_plain:
        return said, Since.SAME  # the labels say of each resource what its name did
    if now.ways.items() <= was.ways.items() and now.lacks_boards_of(was):
        return known, Since.SAME  # slices that went with their board are lost: nobody cut them anew
    if was.ways != now.ways:
        return said, Since.RECUT
    if was.config == now.config:
        return said, Since.SAME
    return (said, Since.RECUT) if _is_carried_out(old, row, now) else (known, Since.SAME)


def _has_more(old: Columns, row: Columns, layout: Layout) -> bool:
    return any(row["capacity"].get(name, 0) > old["expected"].get(name, 0) for name in layout.ways)


def _is_carried_out(old: Columns, row: Columns, layout: Layout) -> bool:
    """Whether GPUs were cut by the order that the node has. Its label is there before the MIG manager begins."""
    if row["mig_config_state"] == "failed":
        return False
    return old["mig_config"] == row["mig_config"] or _counts_differ(old["expected"], row["labels"], layout)


def _counts_differ(expected: dict[str, int], labels: dict[str, str], layout: Layout) -> bool:
    counted = most_by_labels(labels, layout)
    return any(expected.get(name, 0) != number for name, number in counted.items() if layout.way(name).profile)
