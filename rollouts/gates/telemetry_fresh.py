"""Every GPU of the changed nodes has reported since its change, and still reports.

A missing sample is never a pass: no source, a silent source, a silent GPU and a metric that is not exported are four
waits with different remedies (Z21, Z23). `unmeasured` gives them to the gates on telemetry, and to the draft.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from health.rules.gpus.base import GpuRule, is_any_metric_exported
from health.telemetry.metrics import DCGM, EXPORTERS, METRICS
from rollouts.gates.base import Evidence, Gate, GateResult, GpuTelemetry, HealthEvidence, Items, When
from rollouts.gates.results import OVERRIDE, no_target, passed, subject, to_come, wait
from wording.lists import names
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items

ADD_SOURCE = ("Add a telemetry source on the page of the cluster.", *OVERRIDE)
CHECK_SOURCE = ("Check the telemetry source on the page of the cluster.", *OVERRIDE)
CHECK_EXPORTER = ("Check whether the exporter runs on the node and lists all of its GPUs.", *OVERRIDE)
NO_EXPORTER = ("The exporters of this vendor have no such metric. Leave the gate out.", *OVERRIDE)
REPORTED = ("temperature_celsius", "power_watts", "gpu_utilisation_ratio", "memory_used_mib", "xid")  # any is a sample
ByNode = Mapping[str, GpuTelemetry | None]  # by name; None: no telemetry of it


@dataclass(frozen=True)
class TelemetryFresh(Gate):
    key: ClassVar[str] = "telemetry_fresh"
    title: ClassVar[str] = "Fresh telemetry"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        if not evidence.counted:
            return no_target()
        telemetry = {target.name: target.telemetry for target in evidence.changed if target.is_seen}
        items = reporting(telemetry)
        if not evidence.changed:
            return to_come(evidence, items)
        if unmet := self.unmeasured(telemetry, evidence.health, items):
            return unmet
        if evidence.not_changed:
            return to_come(evidence, items)
        title = f"Every GPU of {count(len(evidence.changed), 'changed node')} reports"
        return passed(title, "Each has a fresh sample from after its change.", evidence=items)

    def unmeasured(self, telemetry: ByNode, health: HealthEvidence | None, items: Items = ()) -> GateResult | None:
        return unmeasured(telemetry, health, items=items)


def unmeasured(
    telemetry: ByNode, health: HealthEvidence | None, *, by: GpuRule | None = None, items: Items = ()
) -> GateResult | None:
    """Returns WAIT if a GPU reports nothing, or no metric of the rule `by`; None if every GPU is measured."""
    if health is None or not health.has_source:
        title = "The cluster has no GPU telemetry"
        summary = "Without telemetry, the health of the GPUs is unknown."
        return wait(title, summary, cause="no-source", evidence=items, steps=ADD_SOURCE)
    if health.trouble:
        title = "No GPU telemetry arrives from the cluster"
        shown = (*items, EvidenceItem("Reason", health.trouble))
        return wait(title, "Missing samples are not a pass.", cause="source-silent", evidence=shown, steps=CHECK_SOURCE)
    if silent := {name: each for name, each in telemetry.items() if each is None or each.reporting < each.gpus}:
        return _wait_for_samples(silent, items)
    if by is None:
        return None
    blind = {name: each for name, each in telemetry.items() if each is not None and not _can_measure(by, each)}
    return _wait_for_metric(blind, by, items) if blind else None


def reporting(telemetry: ByNode) -> Items:
    """Returns how many of the GPUs report."""
    known = [each for each in telemetry.values() if each is not None]
    return (
        EvidenceItem("GPUs with a fresh sample", sum(each.reporting for each in known)),
        EvidenceItem("GPUs", sum(each.gpus for each in known)),
    )


def _wait_for_samples(silent: ByNode, items: Items) -> GateResult:
    nodes = tuple(silent)
    shown = first_items(
        EvidenceItem(name, f"{each.reporting} of {count(each.gpus, 'GPU')}" if each else "no telemetry")
        for name, each in silent.items()
    )
    missing = sum(each.gpus - each.reporting for each in silent.values() if each)
    gpus = count(missing, "GPU") if missing and all(silent.values()) else "GPUs"
    return wait(
        f"{gpus} of {subject(nodes)} {either(missing, 'reports', 'report')} nothing",
        "Each GPU must have a fresh sample from after the change.",
        cause="gpus-silent",
        nodes=nodes,
        evidence=(*items, *shown),
        steps=CHECK_EXPORTER,
    )


def _can_measure(rule: GpuRule, telemetry: GpuTelemetry) -> bool:
    measured = [key for key in rule.metrics if telemetry.fresh.get(key, 0) >= telemetry.gpus]
    return is_any_metric_exported(rule, measured)


def _wait_for_metric(blind: Mapping[str, GpuTelemetry], rule: GpuRule, items: Items) -> GateResult:
    nodes, metrics = tuple(blind), names([METRICS[key].title for key in rule.metrics])
    shown = (*items, EvidenceItem("Any of these metrics", metrics), EvidenceItem("Nodes", names(nodes)))
    if any(telemetry.exported.intersection(rule.metrics) for telemetry in blind.values()):
        title = f"{rule.title}: no fresh sample of {subject(nodes)}"
        summary = "Every GPU needs a sample of one metric from after the change."
        return wait(title, summary, cause="stale", nodes=nodes, evidence=shown, steps=CHECK_EXPORTER)
    vendors = {telemetry.vendor for telemetry in blind.values()}
    fields = [field for vendor in sorted(vendors) for field in _fields(rule, vendor)]
    enable = f"Enable one of these at the exporter (dcgm-exporter: in its file of counters): {names(fields, most=9)}."
    return wait(
        f"{rule.title}: not exported by {subject(nodes)}",
        "The gate cannot measure a metric that is not exported.",
        cause="not-exported",
        nodes=nodes,
        evidence=shown,
        steps=(enable, *OVERRIDE) if fields else NO_EXPORTER,
    )


def _fields(rule: GpuRule, vendor: str) -> list[str]:
    """Returns the name of each of the rule's metrics at the vendor's exporter, without metrics that it cannot have."""
    by_metric = {series.metric: series.name for series in reversed(EXPORTERS.get(vendor, DCGM))}  # the newest is first
    return [by_metric[key] for key in rule.metrics if key in by_metric]
