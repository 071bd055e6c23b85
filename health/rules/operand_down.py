"""A component that offers a node's GPUs, or exports their telemetry, does not run there."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from gpu.operands import DEVICE_PLUGIN, DRA_DRIVER, DRIVER, EXPORTERS, OF_OTHERS, title_of
from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, Severity
from health.rules.steps import GPU_STACK
from wording.lists import names
from wording.reports import EvidenceItem, fit

CALLED = {DEVICE_PLUGIN: "device plugin", DRIVER: "driver"}  # others by their titles, which begin with a name


@dataclass(frozen=True)
class OperandDown:
    key: ClassVar[str] = "operand-down"
    title: ClassVar[str] = "Operand down"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=1)
    steps: ClassVar[tuple[str, ...]] = (
        GPU_STACK,
        "Read the last log of the pod that crashes: kubectl logs POD --previous",
        "If there is no pod, read the checklist on the node's page: it names the taint or the label.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        away = node.operands_away
        if node.is_changing or node.is_unreported or not away:
            return None
        called = [CALLED.get(operand) or title_of(operand) for operand in away]
        is_deployed = any(operand not in OF_OTHERS and operand != DRA_DRIVER for operand in away)
        results = [] if set(away) <= set(EXPORTERS) else ["Its GPUs are not allocatable."]
        results += ["Its GPUs have no telemetry."] if set(away) & set(EXPORTERS) else []
        kept_by = "label nvidia.com/gpu.deploy.*" if is_deployed else "node selector"
        failing = next((pod for pod in node.failing_pods if pod.operand in away and pod.trouble), None)
        candidates = (
            "A pod of the operand crashes or waits.",
            "The operand does not tolerate a taint of the node.",
            f"A {kept_by} excludes the node.",
        )
        return Problem(
            severity=Severity.CRITICAL if node.has_lost_all else Severity.WARNING,
            title=fit("{} not running on {}", f"{names(called)}"[:1].upper() + names(called)[1:], node.name),
            summary=failing.summary if failing else " ".join(results),
            evidence=(
                EvidenceItem("Operands", ", ".join(away)),
                *((EvidenceItem("Effect", " ".join(results)), failing.evidence) if failing else ()),
            ),
            causes=failing.causes if failing else candidates,
            steps=failing.steps if failing else (),
            facts={"operands": list(away)},
        )
