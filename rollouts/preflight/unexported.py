"""What telemetry does not say of a plan's GPUs, and somebody would look at while their driver is judged (hazard Z23).

No gate reads telemetry: findings do, and a soak without any is taken for health. What is not exported, a source that is
silent and none at all are three things, and each is mended elsewhere.
"""

from collections.abc import Iterator, Sequence

from fleet.models import ExporterRound
from health.models import TelemetrySource
from health.rules.gpus.base import GpuRule, can_see
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.throttled import Throttled
from health.sources.of_clusters import exported_in
from health.sources.of_node import standing_of
from health.telemetry.metrics import METRICS
from rollouts.checks import Check, each, stage_field
from rollouts.gates.soak import Soak
from rollouts.models import Stage
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import count, either

# Of the rules about GPUs those whose metrics exporters leave out unless somebody switches them on.
WANTED: tuple[GpuRule, ...] = (EccCorrected(), EccUncorrected(), NvlinkErrors(), Throttled())
BY_HAND = "Or look at the GPUs of the canary by hand before a stage goes on."


def is_not_seen(subject: PreflightSubject) -> Iterator[Check]:
    """Two queries; where exporters are asked one by one, two more and a question to Redis."""
    cluster, nodes = subject.plan.cluster, subject.picks.nodes
    if not nodes:
        return
    field = _where_it_soaks(subject.stages)
    source = TelemetrySource.objects.filter(cluster=cluster.pk).first()
    standing = standing_of(source, ExporterRound.objects.filter(cluster=cluster.pk).first(), now=subject.now)
    their = f"the GPUs of {count(len(nodes), 'node')} of this plan"
    if not standing.has_source:
        none = f"{cluster.name} has no source of telemetry: how {their} fare with the new driver nobody sees."
        yield Check("telemetry-none", none, f"Add one on the cluster's page. {BY_HAND}", field=field)
    elif standing.is_silent:
        silent = f"The telemetry of {cluster.name} is silent: how {their} fare with the new driver nobody sees now."
        yield Check("telemetry-silent", silent, f"Look at its source on the cluster's page. {BY_HAND}", field=field)
    elif blind := _blind(standing.exported or exported_in([cluster.pk], now=subject.now).get(cluster.pk, frozenset())):
        would = either(len(blind), "the rule that reads it finds", "the rules that read it find")
        yield Check(
            "telemetry-not-exported",
            f"The telemetry of {cluster.name} answers and does not export what tells of {_of(blind)}: "
            f"{would} nothing on {count(len(nodes), 'node')} of this plan, whatever the new driver does.",
            f"Switch on at the exporter what is named below (dcgm-exporter: in its file of counters). {BY_HAND}",
            field=field,
            about=each(f"{rule.title}: {_any_of(rule)}" for rule in blind),
        )


def _blind(exported: frozenset[str]) -> list[GpuRule]:
    """None of them where nobody knows yet what is exported."""
    return [rule for rule in WANTED if not can_see(rule, exported)] if exported else []


def _of(rules: Sequence[GpuRule]) -> str:
    return names([f"“{rule.title}”" for rule in rules], most=len(rules))


def _any_of(rule: GpuRule) -> str:
    """What it would read, as the page of a GPU calls it. One of them is enough."""
    return names([METRICS[key].title for key in rule.metrics], most=len(rule.metrics))


def _where_it_soaks(stages: Sequence[Stage]) -> str:
    """The gate of the first stage whose time it is to be looked at. Blank: no stage has one."""
    fields = (stage_field(one.index, f"gate_options.{Soak.key}") for one in stages if Soak.key in one.gate_options)
    return next(fields, "")
