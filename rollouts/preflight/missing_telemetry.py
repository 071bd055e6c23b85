"""Missing telemetry of the plan's GPUs (Z23).

No gate reads telemetry; findings do, and a soak without telemetry looks healthy. A metric that is not exported, a node
without samples, a silent source and no source are four cases with different remedies.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence

from fleet.models import Cluster, Node
from health.rules.gpus.base import GpuRule, can_see
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.throttled import Throttled
from health.sources.cluster_telemetry import ClusterTelemetry, telemetry_of_clusters
from health.telemetry.metrics import METRICS
from rollouts.checks import Check, each, stage_field
from rollouts.gates.soak import Soak
from rollouts.models import Stage
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import count, either, every

# Of the rules about GPUs those whose metrics exporters leave out unless somebody switches them on.
WANTED: tuple[GpuRule, ...] = (EccCorrected(), EccUncorrected(), NvlinkErrors(), Throttled())
BY_HAND = "Or look at the GPUs of the canary by hand before a stage goes on."


def is_not_seen(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings. Two queries; two questions to Redis if there is a source."""
    cluster, nodes = subject.plan.cluster, subject.picks.nodes
    if not nodes:
        return
    field = _where_it_soaks(subject.stages)
    wanted = {key for rule in WANTED for key in rule.metrics}
    telemetry = telemetry_of_clusters([cluster.pk], wanted, now=subject.now)[cluster.pk]
    their = f"the GPUs of {count(len(nodes), 'node')} of this plan"
    if not telemetry.standing.has_source:
        none = f"{cluster.name} has no source of telemetry: how {their} fare with the new driver nobody sees."
        yield Check("telemetry-none", none, f"Add one on the cluster's page. {BY_HAND}", field=field)
    elif telemetry.trouble:
        away = f"How {their} fare with the new driver nobody sees now. {telemetry.trouble}"
        yield Check("telemetry-silent", away, f"Look why Redis does not answer. {BY_HAND}", field=field)
    elif telemetry.standing.is_silent:
        silent = f"The telemetry of {cluster.name} is silent: how {their} fare with the new driver nobody sees now."
        yield Check("telemetry-silent", silent, f"Look at its source on the cluster's page. {BY_HAND}", field=field)
    else:
        yield from _of_each_node(cluster, nodes, telemetry, field=field)


def _of_each_node(
    cluster: Cluster, nodes: Sequence[Node], telemetry: ClusterTelemetry, *, field: str
) -> Iterator[Check]:
    """Yields warnings by node, since exporters of one cluster can export different metrics."""
    is_known = telemetry.kept is not None  # else the first frame is still to come, or Redis lost it
    unheard = {node.name for node in nodes if is_known and node.name not in telemetry.boards.by_node}
    if unheard:
        yield Check(
            "telemetry-not-heard",
            f"The telemetry of {cluster.name} answers and has had nothing of {_part(unheard, nodes)} within a day: how "
            f"{either(len(unheard), 'its GPUs', 'their GPUs')} fare with the new driver nobody sees.",
            f"Look whether an exporter runs there and is scraped. {BY_HAND}",
            field=field,
            about=each(unheard),
        )
    for blind, rules in _blind([node for node in nodes if node.name not in unheard], telemetry).items():
        would = either(len(rules), "the rule that reads it finds", "the rules that read it find")
        yield Check(
            "telemetry-not-exported",
            f"The telemetry of {cluster.name} answers and does not export what tells of {_of(rules)}: "
            f"{would} nothing on {_part(blind, nodes)}, whatever the new driver does.",
            "Switch on at the exporter what is named below, where its GPUs have it (dcgm-exporter: in its file of "
            f"counters). {BY_HAND}",
            field=field,
            about=(*each(f"{rule.title}: {_any_of(rule)}" for rule in rules), *_named(blind, nodes)),
        )


def _blind(nodes: Iterable[Node], telemetry: ClusterTelemetry) -> dict[frozenset[str], list[GpuRule]]:
    """Returns the rules without input by set of nodes; none until a snapshot shows what is exported."""
    exported, found = telemetry.standing.exported, dict[frozenset[str], list[GpuRule]]()
    for rule in WANTED if exported or telemetry.kept else ():
        reads = exported.intersection(rule.metrics)
        blind = frozenset(
            node.name
            for node in nodes
            if not can_see(rule, [key for key in reads if telemetry.is_exported(key, node.name, node.gpu_vendor)])
        )
        if blind:
            found.setdefault(blind, []).append(rule)
    return found


def _part(those: Collection[str], nodes: Sequence[Node]) -> str:
    """Returns text such as "all 3 nodes of this plan" or "2 of 3 nodes of this plan (node-0, node-1)"."""
    if len(those) == len(nodes):
        return f"{every(len(nodes), 'node')} of this plan"
    return f"{len(those)} of {count(len(nodes), 'node')} of this plan ({names(sorted(those))})"


def _named(those: Collection[str], nodes: Sequence[Node]) -> tuple[str, ...]:
    return each(those) if len(those) < len(nodes) else ()


def _of(rules: Sequence[GpuRule]) -> str:
    return names([f"“{rule.title}”" for rule in rules], most=len(rules))


def _any_of(rule: GpuRule) -> str:
    """Returns the metrics that the rule could read, by their display names."""
    return names([METRICS[key].title for key in rule.metrics], most=len(rule.metrics))


def _where_it_soaks(stages: Sequence[Stage]) -> str:
    """Returns the soak gate of the first stage that has one; empty if none has."""
    fields = (stage_field(one.index, f"gate_options.{Soak.key}") for one in stages if Soak.key in one.gate_options)
    return next(fields, "")
