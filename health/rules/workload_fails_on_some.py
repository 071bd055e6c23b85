"""Pods of one template fail on several nodes and run on several others: the failing nodes may share a property.

A template that fails on a single node is a finding of `workload_fails_here`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, Severity, WorkloadHere
from health.rules.workload_fails_here import cuda_evidence
from health.suspects import Suspects
from wording.reports import EvidenceItem, first_items, fit

SHOWN = 3  # suspects


@dataclass(frozen=True)
class WorkloadFailsOnSome:
    key: ClassVar[str] = "workload-fails-on-some"
    title: ClassVar[str] = "Workload fails on several nodes"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # the others have had as long to fail, too
    steps: ClassVar[tuple[str, ...]] = (
        "If a plan changed these nodes, halt it. The plan's page also compares failed and good nodes.",
        "Compare the failing pod's last log (kubectl logs POD --previous) with that of a pod that runs elsewhere.",
        "Move the workload to nodes without the suspected property, by a node selector.",
    )
    one_in: int = 10  # of fewer failing pods per running one, `workload-fails-here` reports the node

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.is_changing or node.is_unreported:
            return None
        here = [each for each in node.workloads if self._is_shared(each)]
        if not here:
            return None
        here.sort(key=lambda each: (-each.failing, each.name))
        first = here[0]
        suspects = first.suspects
        assert suspects is not None  # noqa: S101 - by `_is_shared`
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} fails on {} and other nodes", first.name, node.name),
            summary=suspects.title,
            evidence=first_items(item for each in here for item in _evidence(each)),
            causes=tuple(_cause(suspects)),
            steps=self.steps,
            identity=" ".join(sorted(each.name for each in here)) + suspects.title,
        )

    def _is_shared(self, each: WorkloadHere) -> bool:
        is_common = each.failing_elsewhere * self.one_in > each.running_elsewhere
        return each.suspects is not None and each.failing > 0 and not each.running and is_common


def _evidence(each: WorkloadHere) -> Iterator[EvidenceItem]:
    if each.suspects is None:
        return
    yield EvidenceItem(f"Nodes where {each.name} fails", each.suspects.failed)
    yield EvidenceItem("Nodes where it runs", each.suspects.good)
    yield from cuda_evidence(each)
    for suspect in each.suspects.suspects[:SHOWN]:
        yield EvidenceItem(suspect.title, suspect.counts)
        yield EvidenceItem("p, corrected", round(suspect.corrected_p, 4))


def _cause(suspects: Suspects) -> Iterator[str]:
    first = next(iter(suspects.suspects), None)
    if first is not None and first.is_cause:
        yield f"{first.title}."
