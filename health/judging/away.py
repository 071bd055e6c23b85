"""Operands that do not run on nodes that miss what they do: who offers GPUs, and who tells of them."""

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
    EXPORTERS,
    GAUDI_EXPORTER,
    GAUDI_PLUGIN,
    INTEL_DRA,
    INTEL_PLUGIN,
)
from gpu.resources.names import Vendor, is_dra, is_virtual, vendor_of
from health.judging.hearing import Hearing, called_silent

AT_ONCE = 500  # names in one query
PLUGINS = {
    Vendor.NVIDIA: DEVICE_PLUGIN,
    Vendor.AMD: AMD_PLUGIN,
    Vendor.HABANA: GAUDI_PLUGIN,
    Vendor.INTEL: INTEL_PLUGIN,
}
DRA_DRIVERS = {Vendor.NVIDIA: DRA_DRIVER, Vendor.AMD: AMD_DRA, Vendor.INTEL: INTEL_DRA}
OF_VENDOR: Mapping[str, tuple[str, ...]] = {
    Vendor.AMD: (AMD_EXPORTER,),
    Vendor.HABANA: (GAUDI_EXPORTER,),
}  # of the others DCGM's


def operands_away(cluster: Cluster, hearing: Hearing | None) -> Mapping[str, tuple[str, ...]]:
    """By node, those of which no pod is ready there. One query, and another where nobody listens; two more and two for
    500 nodes where any misses some.

    Only of operands that the cluster runs as DaemonSets: of a device plugin that is a service of the host nobody knows.
    """
    short = Node.objects.filter(cluster=cluster, state_code=NodeState.GPUS_MISSING).with_gpus()
    missing = {name: _offerers(*amounts) for name, *amounts in short.values_list("name", "expected", "allocatable")}
    silent = hearing.ever - hearing.now if hearing else called_silent(cluster)
    if not missing and not silent:
        return {}
    wanted = (*PLUGINS.values(), *DRA_DRIVERS.values(), *EXPORTERS)
    run = set(Operand.objects.filter(cluster=cluster, operand__in=wanted).values_list("operand", flat=True))
    ready = _ready(cluster, run, sorted(missing.keys() | silent))
    found: dict[str, list[str]] = defaultdict(list)
    for node, offerers in missing.items():
        if away := sorted((offerers & run) - ready[node]):
            found[node] += away
    if run.intersection(EXPORTERS):
        for node, vendor in _vendors(cluster, [node for node in silent if not ready[node].intersection(EXPORTERS)]):
            its = OF_VENDOR.get(vendor, DCGM_EXPORTERS)
            if run.intersection(its):
                found[node].append(its[0])
    return {node: tuple(operands) for node, operands in found.items()}


def _offerers(expected: Mapping[str, int], allocatable: Mapping[str, int]) -> set[str]:
    """The operands that offer what is missing. What virtual machines get, others offer."""
    gone = (name for name, amount in expected.items() if amount > allocatable.get(name, 0) and not is_virtual(name))
    by_vendor = ((DRA_DRIVERS if is_dra(name) else PLUGINS, vendor_of(name)) for name in gone)
    return {operands[vendor] for operands, vendor in by_vendor if vendor in operands}


def _vendors(cluster: Cluster, names: list[str]) -> Iterator[tuple[str, str]]:
    """By name, as far as these are nodes."""
    rows = Node.objects.filter(cluster=cluster).order_by()
    for start in range(0, len(names), AT_ONCE):
        yield from rows.filter(name__in=names[start : start + AT_ONCE]).values_list("name", "gpu_vendor")


def _ready(cluster: Cluster, operands: Iterable[str], nodes: Collection[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    names = list(nodes)
    pods = Pod.objects.filter(cluster=cluster, operand__in=list(operands), is_ready=True).order_by()
    for start in range(0, len(names), AT_ONCE):
        rows = pods.filter(node_name__in=names[start : start + AT_ONCE]).values_list("node_name", "operand")
        for node, operand in rows:
            found[node].add(operand)
    return found
