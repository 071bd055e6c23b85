"""Maps each series to its device and node: the exporter's labels, checked against Kubernetes. Pure.

NVIDIA/dcgm-exporter: `Hostname` (`hostname` since #655) is the node's name if NODE_NAME is set (#129), else that of the
exporter's own pod, or "localhost" if it reads an engine elsewhere (#572). A Prometheus that keeps its own labels has
the exporter's pod in `pod`, and the tenant's in `exported_pod`. If it discovers its targets it may add the node's name,
under a configured label (`kubernetes_node` in NVIDIA's guides), or as their `instance`.

ROCm/device-metrics-exporter, docs/configuration/configmap.md: `serial_number` is always there, and empty in a VM, where
`gpu_uuid` can be enabled. First its labels were only in capitals, as in its configuration; since #16 at the latest each
is in lower case (gpuagent_metrics.go, GetExportLabels). Both are accepted. On a host of VMs every GPU has the serial
number N/A (#219), and in a VM every one had a UUID of zeros (#233): a value shared by all identifies none.
`gpu_partition_id` is 0 or NA for an unpartitioned GPU, too; `gpu_compute_partition_type` (spx, or none) tells whether
it is partitioned. `gpu_id` counts partitions, each of which is a GPU to the exporter, and no order of boards is
documented.

Gaudi's exporter has the index in `id`, the serial number in `Serial`, and no node. DCGM's has the number if
DCGM_FI_DEV_SERIAL is in its counters with the type label: it is then on each series, like the driver's version.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from health.telemetry.snapshot import GpuDevice, GpuDeviceKey, TelemetrySnapshot, in_order
from wording.numbers import are, count

# Labels that may have the node's name: from Prometheus, and from the exporter.
WRITTEN = ("node", "kubernetes_node", "kubernetes_node_name", "k8s_node_name", "nodename")
HOST_LABELS = ("Hostname", "hostname", "exported_hostname", "exported_node")
# AMD's partition types, and ids, of a GPU that is not partitioned; the number is one of those that know none (#233).
WHOLE = ("", "spx", "none", "na", "n/a", "4294967295")
_NO_NAME = re.compile(r"(?i:0+|(GPU-)?0{8}(-0{4}){3}-0{12}|n/?a|none|unknown)")  # placeholder for an unknown name
# Its GPUMetricLabel in exportermetrics.proto.
_AMDS_IN_CAPITALS = {
    name.upper(): name
    for name in (
        "gpu_id", "gpu_uuid", "serial_number", "card_model", "card_series", "card_vendor", "driver_version",
        "vbios_version", "hostname", "pod", "namespace", "container", "job_id", "job_user", "job_partition",
        "gpu_partition_id", "gpu_compute_partition_type", "gpu_memory_partition_type", "clock_type",
    )
}  # fmt: skip
NAMED_AT_MOST = 5  # nodes or devices in a sentence
UUID_CHARS = 64
NAMES = ("UUID", "uuid", "serial_number", "gpu_uuid")  # of a board, the first that is one
SERIALS = ("DCGM_FI_DEV_SERIAL", "serial_number", "Serial")


@dataclass(frozen=True)
class Whereabouts:
    """Kubernetes' view: the names of nodes, and the node of each exporter pod."""

    nodes: frozenset[str]
    exporters: Mapping[str, str] = field(default_factory=dict)  # node by name of the pod

    def called(self, name: str) -> str:
        """Returns the node of that name, or the only one whose host has it; empty if there is none.

        A host may report its name with or without its domain, and in its own case. Kubelets use lower case
        (kubernetes/component-helpers, node/util/hostname.go), and the name given by a cloud or an admin.
        """
        if name in self.nodes:
            return name
        lower = name.lower()
        if lower in self.nodes:
            return lower
        host, _, domain = lower.partition(".")
        several = self._by_host.get(host, ()) if not host.isdigit() else ()  # that is an address
        alike = [node for node in several if not domain or node == host]
        return alike[0] if len(several) == len(alike) == 1 else ""

    def is_service(self, target: str) -> bool:
        """Returns whether this scrape target alternates between exporters."""
        name, _, rest = target.partition(".")
        return rest != "" and name in self._services

    @cached_property
    def _services(self) -> frozenset[str]:
        """Returns the likely names of Services over several nodes: pod names without their unique parts."""
        nodes: dict[str, set[str]] = {}
        for pod, node in self.exporters.items():
            nodes.setdefault(pod.rpartition("-")[0], set()).add(node)
        return frozenset(stem for stem, of in nodes.items() if stem and len(of) > 1)

    @cached_property
    def _by_host(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            found.setdefault(node.partition(".")[0], []).append(node)
        return found


@dataclass(frozen=True)
class Inventory:
    devices: tuple[GpuDevice, ...]
    notes: tuple[str, ...]  # contradictions, as sentences
    left_out: int = 0  # that series name, and that are of no node of this cluster, or of two
    contested: frozenset[GpuDeviceKey] = frozenset()  # of two


def take_inventory(labelled: Iterable[tuple[tuple[str, str], Mapping[str, str]]], where: Whereabouts) -> Inventory:
    """Returns the device key and all labels of each series. A device claimed by two nodes belongs to neither."""
    found: dict[tuple[str, str], GpuDevice] = {}
    contested: dict[tuple[str, str], set[str]] = {}
    odd, named = _Odd(), set[tuple[str, str]]()
    for key, labels in labelled:
        named.add(key)
        if not key[0] or max(map(len, key)) > UUID_CHARS:
            odd.nameless += 1
            continue
        node = _node_of(labels, where, odd)
        if not node:
            continue
        device = _device(key, labels, node)
        before = found.setdefault(key, device)
        if device.serial and not before.serial and before.node_name == node:
            found[key] = device
        if before.node_name != node:
            contested.setdefault(key, {before.node_name}).add(node)
    for key in contested:
        del found[key]
    left_out = len(named) - len(found)
    return Inventory(in_order(found.values()), _notes(odd, contested), left_out, frozenset(contested))


@dataclass
class _Odd:
    nameless: int = 0  # series that name no device
    placeless: int = 0  # series that name no node
    unknown: dict[str, None] = field(default_factory=dict)  # names that are no node's
    untrue: dict[str, None] = field(default_factory=dict)
    services: dict[str, None] = field(default_factory=dict)  # services in front of exporters of several nodes


def _node_of(labels: Mapping[str, str], where: Whereabouts, odd: _Odd) -> str:
    """Returns the node where the exporter runs, or else the one in its labels; empty if unknown."""
    said = [name for label in HOST_LABELS if (name := labels.get(label, ""))]
    runs_on = _runs_on(labels, where)
    claimed = next((node for name in said if (node := _claimed(name, where))), "")
    if runs_on and claimed and claimed != runs_on:
        odd.untrue[untrue_name(runs_on, claimed)] = None
    instance = labels.get("instance", "")
    target = instance.rpartition(":")[0] or instance
    if where.is_service(target):
        odd.services[instance[:100]] = None
    node = runs_on or claimed or where.called(target)
    if not node:
        name = next(iter([*said, *filter(None, map(labels.get, WRITTEN))]), "")
        odd.placeless += not name
        odd.unknown.update({name[:100]: None} if name else {})
    return node


def in_lower_case(labels: dict[str, str]) -> dict[str, str]:
    """Returns the labels with AMD's names in lower case: its first exporters wrote them in capitals."""
    if _AMDS_IN_CAPITALS.keys().isdisjoint(labels):
        return labels
    return {_AMDS_IN_CAPITALS.get(name, name): value for name, value in labels.items()}


def with_capital_variants(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of labels, and AMD's among them in capitals as well."""
    found = tuple(names)
    return (*found, *(name.upper() for name in found if name.upper() in _AMDS_IN_CAPITALS))


def node_of(labels: Mapping[str, str], where: Whereabouts) -> str:
    """Returns the node in the labels, for any device; empty if it is unknown."""
    return _node_of(labels, where, _Odd())


def silenced(
    before: TelemetrySnapshot,
    devices: Iterable[GpuDevice],
    where: Whereabouts,
    *,
    since: float,
    contested: Collection[GpuDeviceKey] = (),
) -> list[GpuDevice]:
    """Returns devices without any series now. A GPU that fell off its bus is kept although it is in no answer.

    Devices of departed nodes, of boards that were partitioned again, and devices claimed by several nodes are left out.
    """
    there = {device.uuid for device in devices}
    return [
        device
        for device, at in zip(before.devices, before.newest_by_device(), strict=True)
        if at >= since and device.uuid not in there and device.node_name in where.nodes and device.key not in contested
    ]


def _claimed(name: str, where: Whereabouts) -> str:
    """Returns the node that an exporter names, if need be by its own pod's name."""
    return name if name in where.nodes else where.exporters.get(name, "") or where.called(name)


def _runs_on(labels: Mapping[str, str], where: Whereabouts) -> str:
    """Returns the node from the scraped pod, or from Prometheus' labels; empty if neither is known."""
    by_pod = where.exporters.get(labels.get("pod", ""), "")
    return by_pod or next((labels[label] for label in WRITTEN if labels.get(label) in where.nodes), "")


def device_of(labels: Mapping[str, str], node: str) -> GpuDevice | None:
    """Returns the device; None if the series has none, or its name is too long."""
    key = device_key(labels)
    return _device(key, labels, node) if key[0] and max(map(len, key)) <= UUID_CHARS else None


def device_key(labels: Mapping[str, str]) -> tuple[str, str]:
    """Returns the same as `GpuDevice.key`: the UUID of a board, or its serial number if it has no UUID."""
    uuid = next((text for name in NAMES if (text := labels.get(name)) and not _NO_NAME.fullmatch(text)), "")
    return uuid, labels.get("GPU_I_ID") or _partition(labels)


def _partition(labels: Mapping[str, str]) -> str:
    """Returns the partition of an AMD GPU; empty if it is whole."""
    number = labels.get("gpu_partition_id", "")
    kind = labels.get("gpu_compute_partition_type")
    return "" if number.lower() in WHOLE or (kind is not None and kind.lower() in WHOLE) else number


def _partitioning(labels: Mapping[str, str]) -> str:
    """Returns an AMD GPU's partitioning as in its resource name, such as cpx_nps4; empty if it is whole."""
    if not _partition(labels):
        return ""
    said = (labels.get(f"gpu_{what}_partition_type", "").lower() for what in ("compute", "memory"))
    return "_".join(kind for kind in said if kind not in WHOLE)


def _index(labels: Mapping[str, str]) -> int | None:
    """Returns the index of the board; None if unknown. The index of an AMD partition counts partitions."""
    number = labels.get("gpu") or labels.get("gpu_id") or labels.get("id") or ""
    is_one = number.isascii() and number.isdigit() and len(number) < 5 and not _partition(labels)
    return int(number) if is_one else None


def _device(key: tuple[str, str], labels: Mapping[str, str], node: str) -> GpuDevice:
    product = labels.get("modelName") or labels.get("card_series") or labels.get("card_model") or ""
    serial = next((text for label in SERIALS if (text := labels.get(label)) and not _NO_NAME.fullmatch(text)), "")
    profile = (labels.get("GPU_I_PROFILE") or _partitioning(labels))[:40]
    return GpuDevice(node, _index(labels), key[0], key[1], profile, product[:128], serial[:64])


def _notes(odd: _Odd, contested: Mapping[tuple[str, str], set[str]]) -> tuple[str, ...]:
    notes = []
    if odd.nameless:
        notes.append(f"{nameless(odd.nameless)}.")
    if odd.unknown:
        notes.append(f"Left out: series of nodes that are not in this cluster ({_first_names(list(odd.unknown))}).")
    if odd.placeless:
        notes.append(
            f"Left out: {count(odd.placeless, 'series', 'series')} without a node name. Let Prometheus add the "
            "label node."
        )
    if odd.services:
        notes.append(
            "Prometheus scrapes exporters through a Service, which returns another node each time: "
            f"{_first_names(list(odd.services))}. Let Prometheus scrape the pods."
        )
    return (*notes, *notes_on_claims(list(odd.untrue), contested))


def notes_on_claims(untrue: Sequence[str], contested: Mapping[tuple[str, str], Collection[str]]) -> tuple[str, ...]:
    """Returns notes. `untrue` holds exporters' false names; `contested` the claiming nodes by device key."""
    notes = []
    if untrue:
        notes.append(f"The node where the exporter runs counts, not its node label: {_first_names(untrue)}.")
    if contested:
        first, number = next(iter(contested)), len(contested)
        notes.append(
            f"{count(number, 'device')} {are(number)} claimed by several nodes and assigned to none: {first[0]} by "
            f"{' and '.join(sorted(contested[first])[:NAMED_AT_MOST])}."
        )
    return tuple(notes)


def nameless(number: int) -> str:
    return f"Left out: {count(number, 'series', 'series')} without a UUID or serial number of a GPU"


def untrue_name(runs_on: str, claimed: str) -> str:
    return f"the exporter on {runs_on} calls itself {claimed[:100]}"


def _first_names(names: Sequence[str]) -> str:
    rest = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {rest} more" if rest > 0 else "")
