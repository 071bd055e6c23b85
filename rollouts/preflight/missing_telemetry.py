"""Missing telemetry of the plan's GPUs (Z23).

A soak without telemetry looks healthy, and a gate on telemetry waits for ever. A metric that is not exported, a node
without samples, a silent source and no source are four cases with different remedies.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from fleet.models import Node
from health.models import TelemetrySource
from health.rules.gpus.base import GpuRule, is_any_metric_exported
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.throttled import Throttled
from health.sources.cluster_telemetry import ClusterTelemetry, telemetry_of_clusters
from health.telemetry.metrics import METRICS
from rollouts.checks import Check, each, listed, stage_field
from rollouts.gates.base import HealthEvidence
from rollouts.gates.slo import Slo
from rollouts.gates.soak import Soak
from rollouts.models import Stage
from rollouts.preflight.measurability import WAIVE
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.gpu_telemetry import HealthGate, metrics_of, reads_health, telemetry_of_nodes
from wording.lists import names
from wording.numbers import count

# Metrics of GPU rules that exporters leave out by default.
WANTED: tuple[GpuRule, ...] = (EccCorrected(), EccUncorrected(), NvlinkErrors(), Throttled())
BY_HAND = "Or check the GPUs of the canary by hand before the next stage."


def is_not_seen(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. Two queries; two questions to Redis if there is a source."""
    cluster, nodes = subject.plan.cluster, subject.picks.nodes
    if not nodes:
        return
    field = _first_soak_gate(subject.stages)
    asked = [(one, gate) for one in subject.stages for gate in one.gates if reads_health(gate) and not gate.advisory]
    wanted = metrics_of(gate for _, gate in asked).union(*(rule.metrics for rule in WANTED))
    telemetry = telemetry_of_clusters([cluster.pk], wanted, now=subject.now)[cluster.pk]
    yield from _gates_without_input(subject, asked, telemetry)
    yield from _gates_without_prometheus(subject)
    summary = f"The GPUs of {count(len(nodes), 'node')} are not observed during the change."
    if not telemetry.standing.has_source:
        title, steps = (
            f"Cluster {cluster.name} has no telemetry source",
            ("Add one on the page of the cluster.", BY_HAND),
        )
        yield Check("telemetry-none", title=title, summary=summary, steps=steps, field=field)
    elif telemetry.trouble:
        title, steps = f"Telemetry of {cluster.name} cannot be read", ("Check why Redis does not answer.", BY_HAND)
        yield Check("telemetry-silent", title=title, summary=telemetry.trouble, steps=steps, field=field)
    elif telemetry.standing.is_silent:
        title, steps = (
            f"The telemetry source of {cluster.name} is silent",
            ("Check it on the page of the cluster.", BY_HAND),
        )
        yield Check("telemetry-silent", title=title, summary=summary, steps=steps, field=field)
    else:
        yield from _checks_by_node(nodes, telemetry, field=field)


def _gates_without_input(
    subject: PreflightSubject, asked: Sequence[tuple[Stage, HealthGate]], telemetry: ClusterTelemetry
) -> Iterator[Check]:
    """Yields a grave warning for each gate that cannot be measured now."""
    picked, metrics = subject.picks.by_stage, metrics_of(gate for _, gate in asked)
    nodes = {node.uid: node for one, _ in asked for node in picked.get(one.index, ())}
    shown = telemetry_of_nodes(telemetry, nodes.values(), metrics, now=subject.now)
    health = HealthEvidence(None, has_source=shown.has_source, trouble=shown.trouble)
    for one, gate in asked:
        its = {node.name: shown.by_node.get(node.uid) for node in picked.get(one.index, ())}
        if its and (unmet := gate.unmeasured(its, health)):
            yield Check(
                "unmeasured",
                title=unmet.title,
                summary=f"{gate.title} of {one.name} would wait forever.",
                evidence=unmet.evidence,
                steps=(*unmet.steps[:1], WAIVE),
                is_grave=True,
                field=stage_field(one.index, f"gate_options.{gate.key}"),
            )


def _gates_without_prometheus(subject: PreflightSubject) -> Iterator[Check]:
    """Yields a grave warning for each gate on a service level, if no Prometheus can be asked."""
    asked = [(one, gate) for one in subject.stages for gate in one.gates if isinstance(gate, Slo) and not gate.advisory]
    if not asked or TelemetrySource.objects.filter(cluster=subject.plan.cluster_id, is_on=True).exists():
        return
    for one, gate in asked:
        yield Check(
            "unmeasured",
            title=f"The cluster has no Prometheus for {gate.title}",
            summary=f"{gate.title} of {one.name} would wait forever.",
            steps=("Add a telemetry source on the page of the cluster.", WAIVE),
            is_grave=True,
            field=stage_field(one.index, f"gate_options.{gate.key}"),
        )


def _checks_by_node(nodes: Sequence[Node], telemetry: ClusterTelemetry, *, field: str) -> Iterator[Check]:
    """Yields warnings by node, since exporters of one cluster can export different metrics."""
    is_known = telemetry.kept is not None  # else the first frame is still to come, or Redis lost it
    silent = {node.name for node in nodes if is_known and node.name not in telemetry.boards.by_node}
    if silent:
        yield Check(
            "telemetry-not-received",
            title=f"No telemetry from {_share_of_nodes(silent, nodes)} within a day",
            summary="Their GPUs are not observed during the change.",
            evidence=listed("Nodes", silent),
            steps=("Check whether an exporter runs there and is scraped.", BY_HAND),
            field=field,
        )
    for blind, rules in _rules_without_input([node for node in nodes if node.name not in silent], telemetry).items():
        yield Check(
            "telemetry-not-exported",
            title=f"{count(len(rules), 'rule')} cannot see {_share_of_nodes(blind, nodes)}",
            summary="The exporters do not export the metrics of these rules.",
            evidence=(*each((rule.title, _readable_metrics(rule)) for rule in rules), *listed("Nodes", blind)),
            steps=("Enable one metric of each rule at the exporter (dcgm-exporter: in its file of counters).", BY_HAND),
            field=field,
        )


def _rules_without_input(nodes: Iterable[Node], telemetry: ClusterTelemetry) -> dict[frozenset[str], list[GpuRule]]:
    """Returns the rules without input by set of nodes; none until a snapshot shows what is exported."""
    exported, found = telemetry.standing.exported, dict[frozenset[str], list[GpuRule]]()
    for rule in WANTED if exported or telemetry.kept else ():
        reads = exported.intersection(rule.metrics)
        blind = frozenset(
            node.name
            for node in nodes
            if not is_any_metric_exported(
                rule, [key for key in reads if telemetry.is_exported(key, node.name, node.gpu_vendor)]
            )
        )
        if blind:
            found.setdefault(blind, []).append(rule)
    return found


def _share_of_nodes(some: Collection[str], nodes: Sequence[Node]) -> str:
    return f"{len(some)} of {count(len(nodes), 'node')}"


def _readable_metrics(rule: GpuRule) -> str:
    """Returns the metrics that the rule could read, by their display names."""
    return names([METRICS[key].title for key in rule.metrics], most=len(rule.metrics))


def _first_soak_gate(stages: Sequence[Stage]) -> str:
    """Returns the soak gate of the first stage that has one; empty if none has."""
    fields = (stage_field(one.index, f"gate_options.{Soak.key}") for one in stages if Soak.key in one.gate_options)
    return next(fields, "")
