"""A test Job has passed on each changed node: synthetic load before tenants may return (Z8, Z27).

The engine creates the Jobs (`rollouts/engine/decide/test_jobs.py`) and keeps pods off until they complete
(`rollouts/engine/decide/cordons.py`). The gate reads their results, and waits for Jobs that are missing, running or
blocked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, Items, TargetEvidence, When
from rollouts.gates.results import OVERRIDE, fail, no_target, passed, subject, to_come, wait
from rollouts.test_jobs.test_job import resource_of
from rollouts.test_jobs.test_progress import TestJobOutcome
from wording.numbers import count, either
from wording.reports import EvidenceItem, at_most

READ_JOB = ("Read the output of the Job.", "Then roll back, exclude the node, or resume the plan to run the Job again.")


@dataclass(frozen=True)
class TestJobGate(Gate):
    gpus: int = 1  # that each Job asks for; slices where the node has no whole ones
    image: str = ""  # blank: the one of the settings
    cordon: bool = True  # no other pod comes to a node from its release until its Job has completed

    key: ClassVar[str] = "test_job"
    title: ClassVar[str] = "Test Job"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gpus < 1:
            raise ValueError("gpus is at least 1: a Job without a GPU shows nothing about it.")
        if any(each.isspace() for each in self.image):
            raise ValueError("image is the name of one image, without blanks.")

    def evaluate(self, evidence: Evidence, *, now: object) -> GateResult:
        if not evidence.counted:
            return no_target()
        changed = evidence.changed
        by_outcome = {
            outcome: [one for one in changed if one.test_job and one.test_job.outcome == outcome]
            for outcome in TestJobOutcome
        }
        done = by_outcome[TestJobOutcome.PASSED]
        counts = (
            EvidenceItem("Completed test Jobs", len(done)),
            EvidenceItem("Nodes of the stage", len(evidence.counted)),
        )
        if failed := by_outcome[TestJobOutcome.FAILED]:
            nodes = tuple(target.name for target in failed)
            title = f"The test Job failed on {subject(nodes)}"
            summary = _words(failed[0])
            items = (*counts, *_results(failed))
            return fail(title, summary, cause="failed", nodes=nodes, evidence=items, steps=READ_JOB)
        if open_ones := [target for target in changed if target not in done]:
            return self._waits(open_ones, counts)
        if evidence.not_changed or not changed:
            return to_come(evidence, counts)
        title = f"A test Job completed on {either(len(done), 'the changed node', f'all {len(done)} changed nodes')}"
        return passed(title, "Each Job used GPUs with the new driver.", evidence=counts)

    def _waits(self, targets: list[TargetEvidence], counts: Items) -> GateResult:
        nodes = tuple(target.name for target in targets)
        if without := [one for one in targets if one.test_job is None and _is_settled(one) and not self._resource(one)]:
            title = f"{subject([one.name for one in without])} cannot run the test Job"
            summary = f"The Job requests {count(self.gpus, 'GPU')}. The node offers no such resource."
            return wait(title, summary, cause="no-resource", nodes=nodes, evidence=counts, steps=OVERRIDE)
        first, items = targets[0], (*counts, *_results(targets))
        if first.test_job is None:
            title = f"The test Job on {subject(nodes)} does not exist yet"
            summary = "It is created once the node is Ready with its GPU stack."
            return wait(title, summary, cause="not-made", nodes=nodes, evidence=items)
        if first.test_job.outcome == TestJobOutcome.UNKNOWN:
            title = f"The test Job on {subject(nodes)} is created again"
            return wait(title, _words(first), cause="unknown", nodes=nodes, evidence=items)
        title = f"The test Job on {subject(nodes)} has not completed"
        return wait(title, _words(first), cause="not-through", nodes=nodes, evidence=items)

    def _resource(self, target: TargetEvidence) -> str:
        return resource_of(target.allocatable, self.gpus)


def cordons_by(gates: Iterable[Gate]) -> bool:
    """Returns whether these gates keep released nodes cordoned until their test. An advisory gate does not."""
    return any(isinstance(gate, TestJobGate) and gate.cordon and not gate.advisory for gate in gates)


def _is_settled(target: TargetEvidence) -> bool:
    return target.is_seen and target.is_ready is True


def _words(target: TargetEvidence) -> str:
    """Returns the state of a test Job with its last output."""
    return f"{target.test_job.says} {target.test_job.said.strip()}".strip() if target.test_job else ""


def _results(targets: Iterable[TargetEvidence]) -> Items:
    """Returns the last output of each test Job, or the state of a Job without output."""
    jobs = ((target.name, target.test_job) for target in targets if target.test_job)
    return at_most(EvidenceItem(node, job.said.strip() or job.says) for node, job in jobs)
