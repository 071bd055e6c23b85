"""The GPU stack is up on every changed node: each operand that was Ready before is Ready now."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, TargetEvidence, When
from rollouts.gates.results import (
    OVERRIDE,
    fail,
    passed,
    sentence_of_first_node,
    subject,
    to_come,
    unknown_before,
    wait,
)
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items

STEPS = ("Read the log of the operand's pod on the node.", "Then roll back, or exclude the node.")


@dataclass(frozen=True)
class OperandsReady(Gate):
    timeout: timedelta = timedelta(minutes=10)  # from the new driver to a ready stack

    key: ClassVar[str] = "operands_ready"
    title: ClassVar[str] = "Operands ready"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        seen = [target for target in evidence.changed if target.is_seen]
        down = [target for target in seen if target.baseline and target.missing_operands_text]
        counts = (
            EvidenceItem("Nodes with all operands Ready", len(seen) - len(down)),
            EvidenceItem("Nodes of the stage", len(evidence.counted)),
        )
        if down:
            nodes = tuple(target.name for target in down)
            title = f"{subject(nodes)} {either(len(nodes), 'lacks', 'lack')} a Ready operand"
            items = (*counts, *first_items(EvidenceItem(target.name, target.missing_operands_text) for target in down))
            overdue = any(now - target.state_since > self.timeout for target in down)
            say = fail if overdue else wait
            summary = sentence_of_first_node(nodes, down[0].missing_operands_text)
            return say(title, summary, cause=down[0].missing_operands_text, nodes=nodes, evidence=items, steps=STEPS)
        if unknown := tuple(target.name for target in seen if target.baseline is None):
            return unknown_before(unknown, "The list of Ready operands", counts)
        if blind := tuple(target.name for target in seen if not _had_operands(target)):
            title = f"No operand was Ready on {subject(blind)} before the change"
            summary = "The gate cannot show that the GPU stack is back."
            return wait(
                title, summary, cause="none-before", nodes=blind, evidence=counts, steps=OVERRIDE, is_final=True
            )
        if evidence.not_changed:
            return to_come(evidence, counts)
        nodes_ready = count(len(evidence.counted), "node")
        return passed(f"Every operand is Ready on {nodes_ready}", "All operands from before are back.", evidence=counts)


def _had_operands(target: TargetEvidence) -> bool:
    return target.baseline is not None and bool(target.baseline.operands)
