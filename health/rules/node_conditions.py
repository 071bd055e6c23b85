"""What others see on a node and say by its conditions: the kubelet, node-problem-detector, NVSentinel.

Without one of them nobody reads the kernel's log: an Xid that DCGM does not export is then not seen at all.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.conditions import (
    AFTER_A_BOOT,
    BAD_WHEN_TRUE,
    DETECTOR,
    NETWORK,
    NVSENTINEL,
    RUNS_OUT,
    USUAL_DURING_UPGRADE,
)
from health.rules.base import NODE, NODES, NodeCondition, NodeFacts, Severity, Wrong
from wording.instants import to_the_minute
from wording.numbers import either


@dataclass(frozen=True)
class NodeConditions:
    key: ClassVar[str] = "node-conditions"
    title: ClassVar[str] = "Bad conditions"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def judge(self, node: NodeFacts) -> Wrong | None:
        away = USUAL_DURING_UPGRADE if node.is_changing else frozenset()
        bad = [each for each in node.conditions if each.type in BAD_WHEN_TRUE and each.type not in away]
        if not bad:
            return None
        by = {BAD_WHEN_TRUE[each.type] for each in bad}
        return Wrong(
            Severity.CRITICAL if NVSENTINEL in by else Severity.WARNING,
            f"{' and '.join(sorted(by))} {either(len(by), 'says', 'say')} of {node.name}: {_said(bad)}.",
            _action({each.type for each in bad}),
            {each.type: each.message[:300] for each in bad},
            why=" ".join(sorted(each.type for each in bad)),
            probable_cause=_probable_cause({each.type for each in bad}, node),
        )


def _said(bad: list[NodeCondition]) -> str:
    return "; ".join(f"{each.type}{f' ({each.message[:120]})' if each.message else ''}" for each in bad[:4])


def _probable_cause(types: Collection[str], node: NodeFacts) -> str:
    if not AFTER_A_BOOT.isdisjoint(types):
        boot = f"it booted at {to_the_minute(node.booted_at)}, and" if node.booted_at else "after a boot"
        return f"The kubelet or its container runtime starts again and again: {boot} the two may race."
    return "The machine runs out of it." if RUNS_OUT.issuperset(types) else ""


def _action(types: Collection[str]) -> str:
    """What helps against each, the first thing first."""
    rest = frozenset(types) - AFTER_A_BOOT
    by = {BAD_WHEN_TRUE[each] for each in rest}
    asked = {
        "Look at both logs (journalctl -u kubelet -u containerd) and restart the runtime first.": rest != set(types),
        "Follow what NVSentinel does about it: with its quarantine on it cordons the node by itself.": NVSENTINEL in by,
        "Look at what uses up what the machine runs out of, before pods are evicted.": bool(rest & RUNS_OUT),
        "Look at the pods of the cluster's network plugin on it.": NETWORK in rest,
        "Look at the node's kernel log and events.": DETECTOR in by,
    }
    return " ".join(sentence for sentence, is_asked in asked.items() if is_asked)
