"""An exporter reports an Xid in a series without a GPU: some GPU of the node had it (NVIDIA/DCGM #235)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.conditions import is_applications
from gpu.xids import ACTIONS, XIDS
from health.rules.base import NODE, NODES, RANKS, NodeFacts, Problem, Severity
from health.rules.steps import SAVE_LOGS
from wording.reports import EvidenceItem, fit

CONSEQUENCE = 45  # the driver ends processes after another Xid or the end of a process
FOLLOWS = (
    "45 is a consequence: an Xid came before it, or a process was ended.",
    "The gauge shows only the last Xid. It may hide the first one.",
)


@dataclass(frozen=True)
class XidOfUnknownGpu:
    key: ClassVar[str] = "xid-of-unknown-gpu"
    title: ClassVar[str] = "Xid of an unknown GPU"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)
    steps: ClassVar[tuple[str, ...]] = (
        "Find the GPU in the kernel log (dmesg -T, NVRM: Xid). Its PCI address names the GPU.",
        "Look there for an Xid before this one. 45 follows another Xid, or the end of a process.",
        "Keep the labels gpu and UUID of the series: check the exporter's configuration and Prometheus' relabelling.",
        SAVE_LOGS,
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if not node.unplaced_xids:
            return None
        number = min(node.unplaced_xids, key=lambda xid: (RANKS[_severity(xid).value], xid))
        known, others = XIDS.get(number), sorted(set(node.unplaced_xids) - {number})
        meaning = f" ({known.title})" if known and known.title else ""
        return Problem(
            severity=_severity(number),
            title=fit("Xid {}{} of an unknown GPU of {}", number, meaning, node.name),
            summary="No label of its series names the GPU.",
            evidence=(
                EvidenceItem("Xid", number),
                *((EvidenceItem("Meaning", known.title),) if meaning and known else ()),
                *((EvidenceItem("Other Xids", ", ".join(map(str, others))),) if others else ()),
            ),
            causes=FOLLOWS if number == CONSEQUENCE else (),
            steps=(*self.steps, *(ACTIONS[known.action].steps if known else ())),
            facts={"xid": number, "xids": sorted(node.unplaced_xids)},
            identity=" ".join(map(str, sorted(node.unplaced_xids))),
        )


def _severity(xid: int) -> Severity:
    known = XIDS.get(xid)
    if xid == CONSEQUENCE or known is None:
        return Severity.WARNING
    return Severity.NOTE if is_applications(xid) else Severity(ACTIONS[known.action].severity or Severity.WARNING)
