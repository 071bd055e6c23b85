"""An exporter reports an Xid in a series without a GPU: some GPU of the node had it (NVIDIA/DCGM #235)."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.conditions import is_applications
from gpu.xids import XIDS
from health.rules.base import NODE, NODES, RANKS, NodeFacts, Severity, Wrong
from health.rules.gpus.xid import DO, SEVERITY

CONSEQUENCE = 45  # the driver ends what runs, after another Xid or the end of a process
FOLLOWS = (
    "45 is a consequence: an Xid came before it, or a process was ended. The gauge shows the last Xid alone, so "
    "that the one before may never show."
)
LOOK = (
    "Look in the kernel log of the node (dmesg, NVRM: Xid) for the GPU and for an Xid before this one. Let the "
    "series of the exporter keep their labels gpu and UUID."
)


@dataclass(frozen=True)
class XidOfUnknownGpu:
    key: ClassVar[str] = "xid-of-unknown-gpu"
    title: ClassVar[str] = "Xid of an unknown GPU"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(0)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if not node.unplaced_xids:
            return None
        number = min(node.unplaced_xids, key=lambda xid: (RANKS[_severity(xid).value], xid))
        known = XIDS.get(number)
        title = f" ({known.title})" if known and known.title else ""
        return Wrong(
            _severity(number),
            f"Xid {number}{title} of an unknown GPU of {node.name}: no label of its series names the GPU.",
            f"{LOOK} {DO[known.action]}" if known and known.action in DO else LOOK,
            {"xid": number, "xids": sorted(node.unplaced_xids)},
            why=" ".join(map(str, sorted(node.unplaced_xids))),
            probable_cause=FOLLOWS if number == CONSEQUENCE else "",
        )


def _severity(xid: int) -> Severity:
    known = XIDS.get(xid)
    if xid == CONSEQUENCE or known is None:
        return Severity.WARNING
    return Severity.NOTE if is_applications(xid) else SEVERITY.get(known.action, Severity.WARNING)
