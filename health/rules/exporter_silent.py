"""A node's GPU samples stopped, or never arrived, so the state of its GPUs is unknown."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.operands import AMD_EXPORTER, DCGM_EXPORTERS, EXPORTER_PORTS, GAUDI_EXPORTER
from gpu.resources import Vendor
from health.rules.base import NODE, NODES, NodeFacts, Severity, Wrong

OF_VENDOR = {Vendor.AMD.value: AMD_EXPORTER, Vendor.HABANA.value: GAUDI_EXPORTER}  # of the others DCGM's


@dataclass(frozen=True)
class ExporterSilent:
    key: ClassVar[str] = "exporter-silent"
    title: ClassVar[str] = "Exporter silent"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=2)
    SILENT: ClassVar[str] = "silent"

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.is_changing or node.is_reporting or not node.capacity:
            return None
        if not node.ever_reported and node.unplaced_xids:
            return Wrong(
                Severity.NOTE,
                f"The exporter of {node.name} answers, but none of its series names a GPU.",
                "Find the labels that its series lost: gpu and UUID name the GPU. Check relabelling in "
                "Prometheus and the exporter's configuration.",
                why="nameless",
            )
        if not node.ever_reported:
            beside, first = "while those of other nodes are", ""
            if not node.are_others_reporting:
                beside, first = "and of no other node now", "Look first what the source of its cluster leaves out. "
            return Wrong(
                Severity.NOTE,
                f"No telemetry ever arrived from the GPUs of {node.name}, {beside}.",
                f"{first}{_playbook(node.vendor)}",
                why=f"never {beside}",
            )
        return Wrong(
            Severity.WARNING,
            f"No telemetry arrives from the GPUs of {node.name} any more. Their health is unknown.",
            _playbook(node.vendor),
            why=self.SILENT,
        )


def _playbook(vendor: str) -> str:
    exporter = OF_VENDOR.get(vendor, DCGM_EXPORTERS[0])
    engine = "" if vendor in OF_VENDOR else "does it still reach its DCGM engine (its log; restart the pod); "
    return (
        "Look, in this order: is its exporter's pod Running (the node's page says why not); does it answer (kubectl "
        f"exec … curl localhost:{EXPORTER_PORTS[exporter]}/metrics); {engine}does Prometheus scrape it (its Targets "
        "page; the ServiceMonitor's labels); do the label matchers of the source have this cluster."
    )
