"""A component that offers a node's GPUs, or exports their telemetry, does not run there."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.operands import DEVICE_PLUGIN, DRA_DRIVER, DRIVER, EXPORTERS, OF_OTHERS, title_of
from health.rules.base import NODE, NODES, PODS, NodeFacts, Severity, Wrong
from wording.numbers import either

CALLED = {DEVICE_PLUGIN: "device plugin", DRIVER: "driver"}  # others by their titles, which begin with a name


@dataclass(frozen=True)
class OperandDown:
    key: ClassVar[str] = "operand-down"
    title: ClassVar[str] = "Operand down"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=1)

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        away = node.operands_away
        if node.is_changing or node.is_unreported or not away:
            return None
        called = [CALLED.get(operand) or title_of(operand) for operand in away]
        is_deployed = any(operand not in OF_OTHERS and operand != DRA_DRIVER for operand in away)
        kept_by = "label nvidia.com/gpu.deploy.*" if is_deployed else "node selector"
        so = [] if set(away) <= set(EXPORTERS) else ["its GPUs are not allocatable"]
        so += ["its GPUs have no telemetry"] if set(away) & set(EXPORTERS) else []
        return Wrong(
            Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            f"On {node.name} {' and '.join(f'the {name}' for name in called)} {either(len(away), 'does', 'do')} not "
            f"run: {' and '.join(so)}.",
            "The GPU stack on the node's page says why: a pod of it that crashes or waits, a taint that it does not "
            f"tolerate, or a {kept_by} that keeps it away.",
            {"operands": list(away)},
        )
