"""Which device a series is of, and on which node: what its exporter says, held against what Kubernetes says. Pure.

NVIDIA/dcgm-exporter: `Hostname` (`hostname` since #655) is the node's name, or "localhost" where it asks an engine
elsewhere (#572). A Prometheus that keeps its own labels has the exporter's pod in `pod`, and the
tenant's in `exported_pod`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from health.telemetry.frame import Frame, GpuDevice, in_order

NAMED_AT_MOST = 5  # nodes or devices in a sentence
UUID_CHARS = 64


@dataclass(frozen=True)
class Whereabouts:
    """What Kubernetes says: the names of its nodes, and on which each exporter's pod runs."""

    nodes: frozenset[str]
    exporters: Mapping[str, str] = field(default_factory=dict)  # node by name of the pod


@dataclass(frozen=True)
class Inventory:
    devices: tuple[GpuDevice, ...]
    notes: tuple[str, ...]  # what contradicts, in sentences
    left_out: int = 0  # that series name, and that are of no node of this cluster, or of two


def take_inventory(labelled: Iterable[tuple[tuple[str, str], Mapping[str, str]]], where: Whereabouts) -> Inventory:
    """Of each series the device's key and all labels. A device that two nodes claim is neither's."""
    found: dict[tuple[str, str], GpuDevice] = {}
    contested: dict[tuple[str, str], set[str]] = {}
    unknown, untrue, named = dict[str, None](), dict[str, None](), set[tuple[str, str]]()
    for key, labels in labelled:
        named.add(key)
        if not key[0] or len(key[0]) > UUID_CHARS or len(key[1]) > UUID_CHARS:
            continue
        said = labels.get("Hostname") or labels.get("hostname") or labels.get("node") or ""
        running_on = _exporter_node(labels, where)
        node = running_on or (said if said in where.nodes else "")
        if running_on and said in where.nodes and said != running_on:
            untrue[f"the exporter on {running_on} calls itself {said[:100]}"] = None
        if not node:
            unknown[said[:100] or "no name"] = None
            continue
        device = _device(key, labels, node)
        before = found.setdefault(key, device)
        if before.node_name != node:
            contested.setdefault(key, {before.node_name}).add(node)
    for key in contested:
        del found[key]
    return Inventory(in_order(found.values()), _notes(unknown, untrue, contested), len(named) - len(found))


def silenced(before: Frame, devices: Iterable[GpuDevice], where: Whereabouts, *, since: float) -> list[GpuDevice]:
    """Boards of which no series is left: a GPU that fell off its bus is in no answer any more, and is not forgotten.

    Not those of a node that is gone, and no slice: those go when a board is cut anew.
    """
    there = {device.uuid for device in devices}
    return [
        device
        for device, at in zip(before.devices, before.newest_by_device(), strict=True)
        if at >= since and not device.gi_id and device.uuid not in there and device.node_name in where.nodes
    ]


def _exporter_node(labels: Mapping[str, str], where: Whereabouts) -> str:
    """Blank: the series does not say which pod it was scraped from, or nobody knows that pod."""
    return where.exporters.get(labels.get("pod", ""), "")


def device_of(labels: Mapping[str, str], node: str) -> GpuDevice | None:
    """None: the series is of no device, or names it by more than any name has."""
    key = device_key(labels)
    return _device(key, labels, node) if key[0] and max(map(len, key)) <= UUID_CHARS else None


def device_key(labels: Mapping[str, str]) -> tuple[str, str]:
    """As `GpuDevice.key`: a board by its UUID, or by its serial number where its exporter has no UUID."""
    uuid = labels.get("UUID") or labels.get("uuid") or labels.get("serial_number") or ""
    return uuid, labels.get("GPU_I_ID") or labels.get("gpu_partition_id") or ""


def _device(key: tuple[str, str], labels: Mapping[str, str], node: str) -> GpuDevice:
    number = labels.get("gpu") or labels.get("gpu_id") or ""
    index = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else None
    product = labels.get("modelName") or labels.get("card_model") or ""
    return GpuDevice(node, index, key[0], key[1], labels.get("GPU_I_PROFILE", "")[:40], product[:128])


def _notes(
    unknown: Mapping[str, None], untrue: Mapping[str, None], contested: Mapping[tuple[str, str], set[str]]
) -> tuple[str, ...]:
    notes = []
    if unknown:
        notes.append(f"Series of nodes that this cluster does not have are left out: {_some(list(unknown))}.")
    if untrue:
        notes.append(f"Where it runs is believed, not what it says: {_some(list(untrue))}.")
    if contested:
        first = next(iter(contested))
        notes.append(
            f"{len(contested)} devices are claimed by several nodes and taken for none's, {first[0]} by "
            f"{' and '.join(sorted(contested[first])[:NAMED_AT_MOST])}."
        )
    return tuple(notes)


def _some(names: list[str]) -> str:
    rest = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {rest} more" if rest > 0 else "")
