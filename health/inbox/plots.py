"""Line charts of the GPUs of a finding's node, from half an hour before it began to half an hour after.

The metrics of the rule come first, then related metrics. The rule's limits are drawn.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from fleet.history.lines import PLAN, Span, lines_of_apps
from fleet.models import Gpu, Node
from health.evaluation.limits_in_force import LimitsInForce
from health.inbox.queries import AROUND
from health.models import Finding
from health.rules.base import Severity
from health.rules.gpus import GPU_RULES
from health.rules.gpus.base import GpuRule
from health.rules.limits import Comparing
from health.sources.history import MARKS_AT_MOST, PlotLimit, PlotMark, TelemetryHistory, drawn_of, history_of
from health.sources.node_telemetry import DeviceTelemetry
from health.subjects import SLICE, name_of
from health.telemetry.metrics import METRICS, MetricKind
from health.telemetry.prometheus.ranges import PlotSpan
from health.telemetry.snapshot import GpuDevice
from people.models import User

WINDOW = "around"  # name of this time span in REST and on the page
FINDING = "finding"  # the kind of its marks
BESIDE = ("gpu_utilisation_ratio", "temperature_celsius", "power_watts", "sm_clock_mhz")
BITS = frozenset({"clock_reasons"})  # as a line they would say nothing
RULES: Mapping[str, GpuRule] = {rule.key: rule for rule in GPU_RULES}
BY_SILENCE = frozenset({"exporter-silent"})  # rules of nodes that detect a missing reporter


def is_plotted(finding: Finding) -> bool:
    """Returns whether the finding is about GPU telemetry of an existing node."""
    return finding.node_id is not None and is_of_telemetry(finding)


def is_of_telemetry(finding: Finding) -> bool:
    return finding.rule in RULES or finding.rule in BY_SILENCE


def metrics_of(rule: str) -> list[str]:
    """Returns the distinct metrics of the rule. Xids are marks, not lines."""
    own = RULES[rule].metrics if rule in RULES else ()
    drawn = [key for key in own if METRICS[key].kind is not MetricKind.LATCHED and key not in BITS]
    return list(dict.fromkeys([*drawn, *BESIDE]))


def plots_of(finding: Finding, node: Node, *, since: float = 0, now: datetime) -> TelemetryHistory:
    """Returns the charts of a finding for which `is_plotted` is true.

    `since` and the queries are those of `history_of`.
    """
    first, last = finding.since - AROUND, min(now, finding.since + AROUND)
    span = PlotSpan(max(0, math.ceil((last - first).total_seconds())), last.timestamp(), since)

    def is_subject(device: DeviceTelemetry) -> bool:
        known = GpuDevice(node.name, device.index, device.uuid, device.gi_id, device.profile)
        if SLICE in finding.subject or not finding.gpu_uuid:
            return name_of(known) == finding.subject
        return device.uuid == finding.gpu_uuid

    drawn = drawn_of(node, WINDOW, span, metrics=metrics_of(finding.rule), is_subject=is_subject, now=now)
    limits = limits_of(finding)
    plots = [replace(plot, limits=limits.get(plot.key, ())) for plot in drawn.plots]
    marks = sorted([*drawn.marks, *_marks(finding, first, last)], key=lambda mark: mark.at)
    return replace(drawn, plots=plots, marks=marks)


def plots_of_gpu(gpu: Gpu, window: str, *, since: float = 0, now: datetime) -> TelemetryHistory:
    """Returns the charts of one GPU and its slices, with the limits in force. The GPU needs its node and cluster
    loaded.

    `since` is that of `history_of`; two queries more than there.
    """
    drawn, limits = history_of(gpu.node, window, gpu=gpu, since=since, now=now), limits_for(gpu.node)
    return replace(drawn, plots=[replace(plot, limits=limits.get(plot.key, ())) for plot in drawn.plots])


def with_plans(drawn: TelemetryHistory, node: Node, user: User) -> TelemetryHistory:
    """Adds the actions of plans that the user may see, each with a link to its plan, with one query."""
    asked = drawn.asked
    since, until = (datetime.fromtimestamp(at, UTC) for at in (asked.first, asked.last + asked.step_s))
    span = Span(kinds=frozenset({PLAN}), since=since, before=until, most=MARKS_AT_MOST + 1)
    plans = [PlotMark(line.at, PLAN, line.sentence, line.href) for line in lines_of_apps(node, user, span)]
    marks = sorted([*drawn.marks, *plans], key=lambda mark: mark.at)
    left_out = drawn.marks_left_out + max(0, len(marks) - MARKS_AT_MOST)
    return replace(drawn, marks=marks[-MARKS_AT_MOST:], marks_left_out=left_out)


def limits_for(node: Node) -> dict[str, list[PlotLimit]]:
    """Returns limits by metric. Limits on shares are left out: they matter to some workloads only (Z28)."""
    rules = [rule for rule in GPU_RULES if isinstance(rule, Comparing) and rule.scale.metric]
    in_force, found = LimitsInForce.of(node.cluster, rules), {}
    for rule in rules:
        its = in_force.rule_for(rule, node.name)
        if isinstance(its, Comparing) and not its.scale.percent_of:
            levels = ((Severity.WARNING, its.limits.warn), (Severity.CRITICAL, its.limits.critical))
            found[its.scale.metric] = [
                PlotLimit(severity.value, level) for severity, level in levels if level is not None
            ]
    return found


def limits_of(finding: Finding) -> dict[str, list[PlotLimit]]:
    """Returns by metric the limits that were in force when the finding was evaluated."""
    rule: object = RULES.get(finding.rule)
    if not isinstance(rule, Comparing) or not rule.scale.metric:
        return {}
    found = []
    for severity, key in ((Severity.WARNING, "warn"), (Severity.CRITICAL, "critical")):
        limit = finding.facts.get(key)
        level = rule.scale.level(limit, finding.facts) if isinstance(limit, int | float) else None
        if level is not None:
            found.append(PlotLimit(severity.value, level))
    return {rule.scale.metric: found}


def unit_of_limits(finding: Finding) -> str:
    """Returns the unit of rate limits, which no line can show, such as `errors an hour`; empty if there are none."""
    rule: object = RULES.get(finding.rule)
    return rule.scale.unit if isinstance(rule, Comparing) and not rule.scale.metric else ""


def _marks(finding: Finding, first: datetime, last: datetime) -> Iterator[PlotMark]:
    """Yields the marks of the finding.

    Its opening does not imply a notification: the rule may be in shadow mode or muted.
    """
    confirmed = finding.opened_at if finding.opened_at != finding.since else None
    happened = ((finding.since, "It began"), (confirmed, "It was confirmed"), (finding.resolved_at, "It was resolved"))
    for at, sentence in happened:
        if at is not None and first <= at <= last:
            yield PlotMark(at, FINDING, sentence)
