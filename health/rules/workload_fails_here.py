"""Pods of one template fail on a node, or on one of its GPUs, and run elsewhere: the node is at fault.

If a node fails only one workload, something that only this workload does may be the cause. So it is a note while it
affects one pod.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Problem, Severity, WorkloadHere
from health.rules.steps import CORDON, UNCORDON
from wording.lists import names
from wording.reports import EvidenceItem, first_items, fit

COMPARE = "Compare the node with a comparable healthy node (on its page): {}."
ONE_POD = "One pod proves little. Delete it, and check whether the next one runs on another node."


@dataclass(frozen=True)
class WorkloadFailsHere:
    key: ClassVar[str] = "workload-fails-here"
    title: ClassVar[str] = "Workload fails only here"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # the others have had as long to fail, too
    steps: ClassVar[tuple[str, ...]] = (
        "Compare the failing pod's last log (kubectl logs POD --previous) with that of a pod that runs elsewhere.",
        CORDON,
        COMPARE.format("driver, kernel, Xids"),
        "Drain the node, then run dcgmi diag -r 3 on it.",
        UNCORDON,
    )
    enough: int = 3  # that run elsewhere: of fewer it is anybody's guess
    one_in: int = 10  # one of this many pods may fail on other nodes, too

    def evaluate(self, node: NodeFacts) -> Problem | None:
        if node.is_changing or node.is_unreported:
            return None
        here = [each for each in node.workloads if self._is_the_nodes(each)]
        if not here:
            return None
        here.sort(key=lambda each: (-each.failing, each.name))
        boards = {each.gpu for each in here}
        gpu = boards.pop() if len(boards) == 1 else None
        place = node.name if gpu is None else f"GPU {gpu} of {node.name}"
        is_one = sum(each.failing for each in here) == 1
        compare = COMPARE.format("driver, kernel, Xids" if node.is_nvidias else "driver, kernel")
        steps = (*self.steps[:2], compare, *self.steps[3:])
        return Problem(
            severity=Severity.NOTE if is_one else Severity.WARNING,
            title=fit(
                "{} only on {}", f"{here[0].name} fails" if len(here) == 1 else f"{len(here)} workloads fail", place
            ),
            summary="Pods of the same template run elsewhere.",
            evidence=first_items(item for each in here for item in _evidence(each)),
            causes=()
            if is_one
            else (f"The {'node' if gpu is None else 'GPU'} is at fault, not the workload.", *_cuda_candidates(here)),
            steps=(ONE_POD, *steps) if is_one else steps,
            identity=f"{gpu} {'one' if is_one else ' '.join(sorted(each.name for each in here[:20]))}",
        )

    def _is_the_nodes(self, each: WorkloadHere) -> bool:
        others = each.running_elsewhere + (each.running if each.gpu is not None else 0)
        runs_beside = each.running > 0 and each.gpu is None
        return (
            each.failing > 0
            and not runs_beside
            and others >= self.enough
            and each.failing_elsewhere * self.one_in <= each.running_elsewhere
        )


def _evidence(each: WorkloadHere) -> Iterator[EvidenceItem]:
    yield EvidenceItem(f"Failing pods of {each.name} here", each.failing)
    if each.tries > each.failing:
        yield EvidenceItem("Tries", each.tries)
    if each.gpu is not None:
        yield EvidenceItem("GPU", each.gpu)
        yield EvidenceItem("Running on the node's other GPUs", each.running)
    yield EvidenceItem("Running on other nodes", each.running_elsewhere)
    yield EvidenceItem("Other nodes", each.nodes_elsewhere)
    if each.failing_elsewhere:
        yield EvidenceItem("Failing on other nodes", each.failing_elsewhere)
    yield from cuda_evidence(each)


def cuda_evidence(each: WorkloadHere) -> Iterator[EvidenceItem]:
    """Yields image and CUDA version of the failing pods, and the CUDA versions of images that run on the node."""
    if each.image:
        yield EvidenceItem("Image", each.image)
        yield EvidenceItem("CUDA of the image", each.cuda or "unknown")
    if each.running_cuda:
        yield EvidenceItem("CUDA of images that run here", names(each.running_cuda))


def _cuda_candidates(here: Sequence[WorkloadHere]) -> Iterator[str]:
    """Yields a candidate if the images that fail here have other CUDA versions than those that run here."""
    fails, runs = {each.cuda for each in here}, {version for each in here for version in each.running_cuda}
    if "" not in fails and runs and not fails & runs:
        yield f"Images with CUDA {names(sorted(fails))} fail here, those with CUDA {names(sorted(runs))} run here."
