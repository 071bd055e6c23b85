"""The number of failed targets is within the budget of the stage."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, When
from rollouts.gates.results import fail, passed, subject, to_come
from rollouts.lifecycle import TargetState
from wording.reports import EvidenceItem, first_items

FAILED, TOLERATED = "Failed nodes", "Tolerated failures"  # of its evidence
UNKNOWN = "The cause is unknown."
STEPS = ("Read the cause of each node.", "Then try the nodes again, exclude them, or roll back.")


@dataclass(frozen=True)
class FailureBudget(Gate):
    tolerate: int = 0  # targets that may fail; the next one halts the stage

    key: ClassVar[str] = "failure_budget"
    title: ClassVar[str] = "Failure budget"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        again = {target.uid for target in evidence.tried_again}
        failed = dict.fromkeys(
            t.name
            for t in evidence.targets
            if t.state is TargetState.FAILED
            or t.is_lost
            or (t.upgrade_state == "upgrade-failed" and t.state is not TargetState.EXCLUDED and t.uid not in again)
        )
        unready = (t.name for t in evidence.changed if t.is_seen and t.is_ready is False)
        lost = dict.fromkeys(name for name in unready if name not in failed)
        bad = (*failed, *lost)
        counts = (
            EvidenceItem(FAILED, len(bad)),
            EvidenceItem(TOLERATED, self.tolerate),
            EvidenceItem("Changed nodes", len(evidence.changed)),
        )
        if len(bad) > self.tolerate:
            causes = _causes(evidence, failed, lost)
            title = f"{subject(bad)} failed"
            summary = _first_cause(causes)
            items = (*counts, *first_items(EvidenceItem(node, causes[node]) for node in bad))
            return fail(title, summary, cause="over", nodes=bad, evidence=items, steps=STEPS)
        if any(target.name not in failed for target in evidence.not_changed):
            return to_come(evidence, counts)
        title = f"{len(bad)} of {self.tolerate} tolerated failures used" if self.tolerate else "No node failed"
        return passed(title, f"Changed nodes: {len(evidence.changed)}.", evidence=counts)


def _first_cause(causes: Mapping[str, str]) -> str:
    """Returns the cause of all nodes, or the first known one with its node."""
    if len(set(causes.values())) == 1:
        return next(iter(causes.values()))
    node, cause = next((node, cause) for node, cause in causes.items() if cause != UNKNOWN)
    return f"{node}: {cause}"


def _causes(evidence: Evidence, failed: Iterable[str], lost: Iterable[str]) -> dict[str, str]:
    """Returns the cause of each failure by node."""
    reasons = {target.name: target.failed_reason for target in evidence.targets}
    return {node: reasons[node] or UNKNOWN for node in failed} | dict.fromkeys(lost, "The node is not Ready.")
