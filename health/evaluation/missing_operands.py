"""Operands that do not run on nodes that need them: those that offer GPUs, and those that export telemetry."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from fleet.models import Cluster, Node, Operand, Pod
from fleet.states.node import NodeState
from gpu.operands import (
    AMD_DRA,
    AMD_EXPORTER,
    AMD_PLUGIN,
    DCGM_EXPORTERS,
    DEVICE_PLUGIN,
    DRA_DRIVER,
    DRIVER,
    EXPORTERS,
    GAUDI_EXPORTER,
    GAUDI_PLUGIN,
    INTEL_DRA,
    INTEL_PLUGIN,
)
from gpu.resources.names import Vendor, is_dra, is_virtual, vendor_of
from health.evaluation.exporter_silence import ReportingNodes, called_silent

AT_ONCE = 500  # names in one query
PLUGINS = {
    Vendor.NVIDIA: DEVICE_PLUGIN,
    Vendor.AMD: AMD_PLUGIN,
    Vendor.HABANA: GAUDI_PLUGIN,
    Vendor.INTEL: INTEL_PLUGIN,
}
DRA_DRIVERS = {Vendor.NVIDIA: DRA_DRIVER, Vendor.AMD: AMD_DRA, Vendor.INTEL: INTEL_DRA}
WAIT_FOR_THE_DRIVER = frozenset({DEVICE_PLUGIN, DRA_DRIVER})
OF_VENDOR: Mapping[str, tuple[str, ...]] = {
    Vendor.AMD: (AMD_EXPORTER,),
    Vendor.HABANA: (GAUDI_EXPORTER,),
}  # of the others DCGM's


def operands_away(cluster: Cluster, reporting: ReportingNodes | None) -> Mapping[str, tuple[str, ...]]:
    """Returns by node the operands without a ready pod there.

    One query, and another without telemetry; two more, and three for every 500 nodes, if any node misses operands. Only
    operands that run as DaemonSets count: a device plugin run by the host is unknown. An operand that others wait for
    is listed first: a driver whose pod on the node is not ready.
    """
    short = Node.objects.filter(cluster=cluster, state_code=NodeState.GPUS_MISSING).with_gpus()
    missing = {name: _offerers(*amounts) for name, *amounts in short.values_list("name", "expected", "allocatable")}
    silent = reporting.ever - reporting.now if reporting else called_silent(cluster)
    if not missing and not silent:
        return {}
    wanted = (DRIVER, *PLUGINS.values(), *DRA_DRIVERS.values(), *EXPORTERS)
    run = set(Operand.objects.filter(cluster=cluster, operand__in=wanted).values_list("operand", flat=True))
    ready = _ready(cluster, run - {DRIVER}, sorted(missing.keys() | silent))
    found: dict[str, list[str]] = defaultdict(list)
    for node, offerers in missing.items():
        if away := sorted((offerers & run) - ready[node]):
            found[node] += away
    if DRIVER in run:
        waiting = sorted(node for node, away in found.items() if WAIT_FOR_THE_DRIVER.intersection(away))
        for node in _without_driver(cluster, waiting):
            found[node].insert(0, DRIVER)
    if run.intersection(EXPORTERS):
        for node, vendor in _vendors(cluster, [node for node in silent if not ready[node].intersection(EXPORTERS)]):
            its = OF_VENDOR.get(vendor, DCGM_EXPORTERS)
            if run.intersection(its):
                found[node].append(its[0])
    return {node: tuple(operands) for node, operands in found.items()}


def _offerers(expected: Mapping[str, int], allocatable: Mapping[str, int]) -> set[str]:
    """Returns the operands that offer the missing resources. Resources of virtual machines have others."""
    gone = (name for name, amount in expected.items() if amount > allocatable.get(name, 0) and not is_virtual(name))
    by_vendor = ((DRA_DRIVERS if is_dra(name) else PLUGINS, vendor_of(name)) for name in gone)
    return {operands[vendor] for operands, vendor in by_vendor if vendor in operands}


def _vendors(cluster: Cluster, names: list[str]) -> Iterator[tuple[str, str]]:
    rows = Node.objects.filter(cluster=cluster).order_by()
    for start in range(0, len(names), AT_ONCE):
        yield from rows.filter(name__in=names[start : start + AT_ONCE]).values_list("name", "gpu_vendor")


def _ready(cluster: Cluster, operands: Iterable[str], nodes: Collection[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for node, operand, is_ready in _pods(cluster, operands, nodes):
        if is_ready:
            found[node].add(operand)
    return found


def _without_driver(cluster: Cluster, nodes: Collection[str]) -> set[str]:
    """Returns nodes that have a driver pod, but no ready one."""
    ready: dict[str, bool] = {}
    for node, _, is_ready in _pods(cluster, [DRIVER], nodes):
        ready[node] = ready.get(node, False) or is_ready
    return {node for node, is_any in ready.items() if not is_any}


def _pods(cluster: Cluster, operands: Iterable[str], nodes: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    names = list(nodes)
    pods = Pod.objects.filter(cluster=cluster, operand__in=list(operands)).order_by()
    for start in range(0, len(names), AT_ONCE):
        yield from pods.filter(node_name__in=names[start : start + AT_ONCE]).values_list(
            "node_name", "operand", "is_ready"
        )
