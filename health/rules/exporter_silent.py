"""A node's GPU samples stopped, or never arrived, so the state of its GPUs is unknown."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.operands import AMD_EXPORTER, DCGM_EXPORTERS, EXPORTER_PORTS, GAUDI_EXPORTER
from gpu.resources import Vendor
from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from wording.reports import fit

OF_VENDOR = {Vendor.AMD.value: AMD_EXPORTER, Vendor.HABANA.value: GAUDI_EXPORTER}  # of the others DCGM's


LEFT_OUT = "Check which nodes the telemetry source of the cluster leaves out."


@dataclass(frozen=True)
class ExporterSilent:
    key: ClassVar[str] = "exporter-silent"
    title: ClassVar[str] = "Exporter silent"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=2)
    SILENT: ClassVar[str] = "silent"
    steps: ClassVar[tuple[str, ...]] = (
        "Check whether the exporter's pod runs. The GPU stack on the node's page shows why not.",
        "Ask the exporter in its pod (kubectl exec): curl localhost:9400/metrics (DCGM's port; AMD 5000, Gaudi 41611).",
        "If it answers without GPUs, read its log: it may have lost its DCGM engine. Restart the pod.",
        "If it answers with GPUs, check Prometheus: the Targets page, and the labels of the ServiceMonitor.",
        "Check that the label matchers of the cluster's telemetry source select this node.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.is_changing or node.is_reporting or not node.capacity:
            return None
        if not node.ever_reported and node.unplaced_xids:
            return Problem(
                severity=Severity.NOTE,
                title=fit("Exporter of {} names no GPU", node.name),
                summary="The exporter answers, but none of its series names a GPU.",
                causes=("Its series lost the labels gpu and UUID, which name the GPU.",),
                steps=("Check relabelling in Prometheus.", "Check the exporter's configuration."),
                identity="nameless",
            )
        if not node.ever_reported:
            others = "Other nodes have" if node.are_others_reporting else "No other node has"
            summary = f"{others} telemetry now. The health of these GPUs is unknown."
            first = () if node.are_others_reporting else (LEFT_OUT,)
            return Problem(
                severity=Severity.NOTE,
                title=fit("No GPU telemetry from {} yet", node.name),
                summary=summary,
                steps=(*first, *self._steps_for(node.vendor)),
                identity=f"never {summary}",
            )
        return Problem(
            severity=Severity.WARNING,
            title=fit("GPU telemetry of {} stopped", node.name),
            summary="The health of its GPUs is unknown.",
            steps=self._steps_for(node.vendor),
            identity=self.SILENT,
        )

    def _steps_for(self, vendor: str) -> tuple[str, ...]:
        port = EXPORTER_PORTS[OF_VENDOR.get(vendor, DCGM_EXPORTERS[0])]
        ask = f"Ask the exporter in its pod (kubectl exec): curl localhost:{port}/metrics"
        engine = () if vendor in OF_VENDOR else self.steps[2:3]
        return (self.steps[0], ask, *engine, *self.steps[3:])
