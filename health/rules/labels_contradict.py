"""Labels set by hand contradict what discovery reports. Pods that select by such a label run on other GPUs."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, NodeFacts, Problem, Severity
from wording.reports import EvidenceItem, fit


@dataclass(frozen=True)
class LabelsContradict:
    key: ClassVar[str] = "labels-contradict"
    title: ClassVar[str] = "Labels contradict discovery"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES,)
    after: ClassVar[timedelta] = timedelta(minutes=5)
    steps: ClassVar[tuple[str, ...]] = (
        "Find who writes the label: a person, a node template, or a tool for machines.",
        "Correct the label there, or remove it.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if not node.label_conflicts:
            return None
        first = node.label_conflicts[0]
        return Problem(
            severity=Severity.WARNING,
            title=fit("A label of {} contradicts its hardware", node.name),
            summary=fit("Label {} is {}. Discovery reports {}.", first.label, first.value, first.reported, longest=140),
            evidence=tuple(
                item
                for each in node.label_conflicts
                for item in (EvidenceItem(each.label, each.value), EvidenceItem(each.reporter, each.reported))
            ),
            steps=(*self.steps, f"kubectl label node {node.name} {first.label}-"),
        )
