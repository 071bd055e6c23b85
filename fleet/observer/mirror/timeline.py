"""Timeline entries for changes of a node's row. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.rows.node import paused_operands
from gpu.conditions import is_fault, whole_condition
from gpu.cordons import whose_cordon
from gpu.operands import title_of
from gpu.resources import Layout, layout_in_words


@dataclass(frozen=True)
class Entry:
    kind: str  # version, boot, ready, condition, cordon, upgrade, capacity, label
    sentence: str
    detail: dict[str, Any] = field(default_factory=dict)


def entries(old: Columns | None, new: Columns) -> list[Entry]:
    """Returns the entries of one change, in the order of `ASPECTS`; one for a new node."""
    if old is None:
        return [Entry("ready", "Seen for the first time.", {"ready": new["is_ready"]})]
    return [entry for aspect in ASPECTS for entry in aspect(old, new)]


def node_left_entry(old: Columns) -> Entry:
    return Entry("ready", "The node left the cluster.", {"driver_version": old.get("driver_version", "")})


def _ready(old: Columns, new: Columns) -> Iterator[Entry]:
    if old["is_ready"] == new["is_ready"]:
        return
    reason = f": {new['not_ready_reason']}" if new["not_ready_reason"] else ""
    sentence = {
        True: "Ready again.",
        False: f"Not ready{reason}",
        None: f"Its kubelet stopped reporting{reason}",
    }[new["is_ready"]]
    yield Entry("ready", sentence, _change("is_ready", old, new))


def _cordon(old: Columns, new: Columns) -> Iterator[Entry]:
    """Yields a cordon or uncordon. The API server does not record who uncordons."""
    if old["is_unschedulable"] == new["is_unschedulable"]:
        return
    change = _change("is_unschedulable", old, new)
    if new["is_unschedulable"]:
        whose = whose_cordon(new["cordoned_by"], new["labels"])
        yield Entry("cordon", f"Cordoned{whose}.", {**change, "by": new["cordoned_by"]})
    else:
        yield Entry("cordon", "Uncordoned.", change)


def _conditions(old: Columns, new: Columns) -> Iterator[Entry]:
    """Yields faults that begin or end, not changes within a fault."""
    was, now = (_faults(row) for row in (old, new))
    for name in sorted(now.keys() - was.keys()):
        begun = now[name]
        condition = name if begun["status"] == "True" else f"{name}={begun['status']}"
        message = f": {begun['message']}" if begun["message"] else ""
        sentence = f"{begun['reporter']} says {condition}{message}"
        yield Entry("condition", f"{sentence.rstrip('.; ')}.", {"condition": name, "began": begun["since"]})
    for name in sorted(was.keys() - now.keys()):
        yield Entry("condition", f"{name} is no longer reported.", {"condition": name})


def _faults(row: Columns) -> dict[str, dict[str, Any]]:
    return {each["type"]: whole_condition(each) for each in row["conditions"] if is_fault(each)}


def _version(old: Columns, new: Columns) -> Iterator[Entry]:
    was, now = old["driver_version"], new["driver_version"]
    if was != now:
        sentence = f"Runs driver {now}, before {was}." if was else f"Runs driver {now}."
        yield Entry("version", sentence, _change("driver_version", old, new))
    elif was and new["driver_unknown_since"] and not old["driver_unknown_since"]:
        yield Entry("version", f"Reports no driver any more; the last version was {was}.", {"was": was})
    elif was and old["driver_unknown_since"] and not new["driver_unknown_since"]:
        yield Entry("version", f"Reports its driver again: still {now}.", {"is": now})


def _upgrade(old: Columns, new: Columns) -> Iterator[Entry]:
    was, now = old["upgrade_state"], new["upgrade_state"]
    if was != now:
        sentence = f"Upgrade state: {now}." if now else "The upgrade controller no longer has a state for the node."
        yield Entry("upgrade", sentence, _change("upgrade_state", old, new))


AMOUNTS = (
    ("gpu_capacity", "Whole GPUs of the node"),
    ("gpu_allocatable", "Whole GPUs that can be allocated"),
    ("slices_allocatable", "Slices that can be allocated"),
    ("shares_allocatable", "Shares that can be allocated"),
)


def _layout(old: Columns, new: Columns) -> Iterator[Entry]:
    was, now = old["layout"], new["layout"]
    if was == now or (not was and Layout.read(now).is_plain):
        return
    words, before = layout_in_words(now), layout_in_words(was)
    sentence = f"GPUs are offered as {words}, before as {before}."
    if words == before:  # a reordered layout, or another resource name
        sentence = f"GPUs were partitioned or shared again. They are offered as {words}, as before."
    also = [_change(column, old, new) for column, _ in AMOUNTS if old[column] != new[column] and not new[column]]
    yield Entry("capacity", sentence, {**_change("layout", old, new), "also": also})


def _capacity(old: Columns, new: Columns) -> Iterator[Entry]:
    """Yields changed amounts, unless the layout explains them."""
    for column, words in AMOUNTS:
        was, now = old[column], new[column]
        if was != now and (now or old["layout"] == new["layout"]):
            sentence = f"{words}: {_count(now)}, before {_count(was)}."
            yield Entry("capacity", sentence, _change(column, old, new))


def _mig(old: Columns, new: Columns) -> Iterator[Entry]:
    was, now = old["mig_config_state"], new["mig_config_state"]
    if was == now:
        return
    sentence = {
        "": "The MIG manager no longer reports a state.",
        "pending": f"The MIG manager applies the MIG layout {new['mig_config']}.",
        "rebooting": f"The MIG manager reboots it to apply the MIG layout {new['mig_config']}.",
        "success": f"The MIG manager has applied the MIG layout {new['mig_config']}.",
        "failed": f"The MIG manager could not apply the MIG layout {new['mig_config']}.",
    }.get(now, f"The MIG manager reports {now}.")
    yield Entry("capacity", sentence, {**_change("mig_config_state", old, new), "config": new["mig_config"]})


def _hold_entries(old: Columns, new: Columns) -> Iterator[Entry]:
    if old["is_held"] == new["is_held"]:
        return
    if new["is_held"]:
        by = f" by {new['held_by']}" if new["held_by"] else ", not by Quarterdeck"
        sentence = f"Held{by}: the upgrade controller must not touch it."
        yield Entry("label", sentence, {**_change("is_held", old, new), "held_by": new["held_by"]})
    else:
        sentence = "Released: the upgrade controller may touch it."
        yield Entry("label", sentence, {**_change("is_held", old, new), "held_by": old["held_by"]})


def _paused(old: Columns, new: Columns) -> Iterator[Entry]:
    was, now = set(paused_operands(old["labels"])), set(paused_operands(new["labels"]))
    if now - was:
        names = ", ".join(title_of(name) for name in sorted(now - was))
        yield Entry("label", f"Paused for the driver: {names}.", {"paused": sorted(now - was)})
    if was - now:
        names = ", ".join(title_of(name) for name in sorted(was - now))
        yield Entry("label", f"No longer paused: {names}.", {"resumed": sorted(was - now)})


def _kernel(old: Columns, new: Columns) -> Iterator[Entry]:
    if old["kernel"] and old["kernel"] != new["kernel"]:
        sentence = f"Runs kernel {new['kernel']}, before {old['kernel']}."
        yield Entry("version", sentence, _change("kernel", old, new))


def _boot(old: Columns, new: Columns) -> Iterator[Entry]:
    if old["boot_id"] and old["boot_id"] != new["boot_id"]:
        yield Entry("boot", "Booted anew.", {"boot_id": new["boot_id"]})


SYSTEM = (
    ("os_image", "Its operating system is"),
    ("container_runtime", "Its container runtime is"),
    ("kubelet_version", "Its kubelet is"),
)


def _system(old: Columns, new: Columns) -> Iterator[Entry]:
    for column, words in SYSTEM:
        if old[column] and old[column] != new[column]:
            yield Entry("version", f"{words} {new[column]}, before {old[column]}.", _change(column, old, new))


def _change(column: str, old: Columns, new: Columns) -> dict[str, Any]:
    """Returns the detail that `fleet.history.facts` reads."""
    return {"column": column, "was": old[column], "is": new[column]}


def _count(number: int | None) -> str:
    return "unknown" if number is None else str(number)


ASPECTS: tuple[Callable[[Columns, Columns], Iterator[Entry]], ...] = (
    _upgrade,
    _cordon,
    _paused,
    _version,
    _boot,
    _kernel,
    _system,
    _mig,
    _layout,
    _capacity,
    _ready,
    _conditions,
    _hold_entries,
)
