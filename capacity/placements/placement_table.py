"""The figures of a pool's placement as lines of a table: those of its card and of REST, by the names of REST."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from capacity.placements.placement_measures import FailureFigures, HeatFigures, PlacementMeasures
from capacity.placements.placement_report import PlacementReport, PolicyPlacement, SharedFigures
from capacity.placements.service_level_history import ServiceLevelComparison


class PlacementLine(NamedTuple):
    figure: str
    subject: str  # a workload class, a workload, a node or a pod; blank: the pool
    value: object  # None: unknown
    unit: str = ""


def lines_of_placement(report: PlacementReport, measures: PlacementMeasures) -> Iterator[PlacementLine]:
    """Yields the lines. The figures without a class are about all pods whose class has no policy of its own."""
    for part in report.parts:
        yield from _policy_lines(part)
    if report.shared:
        yield from _shared_lines(report.shared)
    yield PlacementLine("nodes", "", measures.nodes, "nodes with GPUs")
    yield PlacementLine("nodes_compared", "", measures.compared, "nodes")
    yield PlacementLine("stranded_gpus", "", measures.stranded, "GPUs, mean of 7 days")
    yield PlacementLine("stranded_hours", "", measures.stranded_hours, "hourly samples")
    yield PlacementLine("mean_loss", "", measures.mean_loss, "GPU-hours if one node fails")
    if worst := measures.worst:
        yield PlacementLine("worst.workloads", worst.name, worst.workloads, "workloads")
        yield PlacementLine("worst.gpu_hours_lost", worst.name, worst.gpu_hours, "GPU-hours")
        yield PlacementLine("worst.gpu_hours_loading", worst.name, worst.loading_gpu_hours, "GPU-hours")
    yield from _failure_lines(measures.failures)
    yield from _heat_lines("full_nodes", measures.full)
    yield from _heat_lines("other_nodes", measures.other)
    if level := measures.service_level:
        yield from _level_lines(level)
        for each in level.classes:
            yield from _class_level_lines(each)
    yield PlacementLine("numa_refusals", "", measures.numa_refusals, "pods")
    yield from _numa_lines(measures)


def _policy_lines(part: PolicyPlacement) -> Iterator[PlacementLine]:
    its, pack, spread = part.workload_class, part.pack, part.spread
    yield PlacementLine("placement_policy", its, part.policy.value)
    yield PlacementLine("spread_label", its, part.label)
    yield PlacementLine("state", its, part.state.value)
    yield PlacementLine("pack.used", its, pack.used, "nodes")
    yield PlacementLine("pack.needed", its, pack.needed, "nodes")
    yield PlacementLine("pack.free", its, pack.free, "GPUs")
    yield PlacementLine("spread.domains", its, spread.domains, "domains")
    yield PlacementLine("spread.unlabelled", its, spread.unlabelled, "nodes")
    yield PlacementLine("spread.workloads", its, spread.workloads, "workloads")
    yield PlacementLine("spread.concentrated", its, spread.concentrated, "workloads")
    for each in spread.worst:
        unit = f"of {each.pods} pods in {each.domain}"
        yield PlacementLine("spread.worst.pods_in_domain", each.name, each.pods_in_domain, unit)


def _shared_lines(shared: SharedFigures) -> Iterator[PlacementLine]:
    yield PlacementLine("shared.nodes", "", shared.nodes, "nodes")
    yield PlacementLine("shared.read", "", shared.read, "nodes")
    yield PlacementLine("shared.gpus", "", shared.gpus, "GPUs with several namespaces")
    yield PlacementLine("shared.most", "", shared.most, "namespaces on one GPU")
    yield PlacementLine("shared.unplaced", "", shared.unplaced, "pods")


def _failure_lines(found: FailureFigures) -> Iterator[PlacementLine]:
    yield PlacementLine("failures.failures", "", found.failures, f"of {found.days} days")
    yield PlacementLine("failures.hours", "", found.hours, "hours watched, of these days")
    yield PlacementLine("failures.in_one_domain", "", found.in_one_domain, "with several nodes")
    yield PlacementLine("failures.elsewhere", "", found.elsewhere, "with several nodes")
    yield PlacementLine("failures.unknown", "", found.unknown, "with several nodes")
    yield PlacementLine("failures.most_nodes", "", found.most_nodes, "nodes")
    yield PlacementLine("failures.is_cut", "", found.is_cut)


def _heat_lines(nodes: str, heat: HeatFigures) -> Iterator[PlacementLine]:
    yield PlacementLine(f"{nodes}.node_hours", "", heat.node_hours, "hours")
    yield PlacementLine(f"{nodes}.temperature", "", heat.temperature, "°C, mean")
    yield PlacementLine(f"{nodes}.temperature_max", "", heat.temperature_max, "°C")
    yield PlacementLine(f"{nodes}.power_watts", "", heat.power_watts, "W, mean of a GPU")
    yield PlacementLine(f"{nodes}.throttled", "", heat.throttled, "part of the time")


def _level_lines(level: ServiceLevelComparison) -> Iterator[PlacementLine]:
    yield PlacementLine("service_level.full_nodes", level.title, level.full, level.unit)
    yield PlacementLine("service_level.other_nodes", level.title, level.other, level.unit)
    yield PlacementLine("service_level.percent_worse", level.title, level.percent_worse, "% on full nodes")
    yield PlacementLine("service_level.hours", level.title, level.hours, "hours")
    yield PlacementLine("service_level.is_current", level.title, level.is_current)
    yield PlacementLine("service_level.trouble", level.title, level.trouble)


def _class_level_lines(level: ServiceLevelComparison) -> Iterator[PlacementLine]:
    its, unit = level.workload_class, f"not measured: {level.why_not}" if level.why_not else level.unit
    yield PlacementLine("service_level.classes.full_nodes", its, level.full, unit)
    yield PlacementLine("service_level.classes.other_nodes", its, level.other, unit)
    yield PlacementLine("service_level.classes.percent_worse", its, level.percent_worse, "% on full nodes")
    yield PlacementLine("service_level.classes.hours", its, level.hours, "hours")


def _numa_lines(measures: PlacementMeasures) -> Iterator[PlacementLine]:
    numa = measures.numa
    if numa is None:
        yield PlacementLine("numa", "", None, "not checked")
        return
    yield PlacementLine("numa.nodes", "", numa.nodes, "nodes")
    for policy, nodes in numa.policies.items():
        yield PlacementLine("numa.policies", policy or "unknown", nodes, "nodes")
    yield PlacementLine("numa.unaligned_nodes", "", numa.unaligned_nodes, "nodes")
    yield PlacementLine("numa.unaligned_pods", "", numa.unaligned_pods, "pods")
    for pod in numa.named:
        yield PlacementLine("numa.spanning", pod.name, 1, f"pod on {pod.node}")
    yield PlacementLine("numa.spanning_unnamed", "", numa.unnamed, "pods")


def as_cells(lines: Iterable[PlacementLine]) -> list[tuple[object, ...]]:
    """Returns rows of a file. An unknown value is named, so that it is no empty cell."""
    return [(line.figure, line.subject, "unknown" if line.value is None else line.value, line.unit) for line in lines]
