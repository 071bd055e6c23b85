"""A test Job has passed on each changed node: synthetic load before tenants may return (Z8, Z27).

The engine creates the Jobs (`rollouts/engine/decide/test_jobs.py`) and keeps pods off until they complete
(`rollouts/engine/decide/cordons.py`). The gate reads their results, and waits for Jobs that are missing, running or
blocked.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from rollouts.gates.base import (
    NO_TARGET,
    TO_COME,
    Evidence,
    Gate,
    GateResult,
    TargetEvidence,
    When,
    fail,
    passed,
    share,
    wait,
)
from rollouts.test_jobs.test_job import resource_of
from rollouts.test_jobs.test_progress import TestJobOutcome
from wording.lists import names
from wording.numbers import count, either


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
            return wait("The stage has no target left: nothing can be tested.", cause=NO_TARGET)
        changed = evidence.changed
        by_outcome = {
            outcome: [one for one in changed if one.test_job and one.test_job.outcome == outcome]
            for outcome in TestJobOutcome
        }
        done = by_outcome[TestJobOutcome.PASSED]
        measured: dict[str, Any] = {"completed": len(done), "of": len(evidence.counted)}
        if failed := by_outcome[TestJobOutcome.FAILED]:
            nodes = tuple(target.name for target in failed)
            others = f" It failed on {names(nodes[1:])}, too." if nodes[1:] else ""
            sentence = f"The test Job on {nodes[0]} failed. {_told(failed[0])}{others}"
            return fail(sentence, cause="failed", nodes=nodes, measured=measured)
        if open_ones := [target for target in changed if target not in done]:
            return self._waits(open_ones, measured)
        if evidence.not_changed or not changed:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        on = either(len(done), "the changed node", f"each of {count(len(done), 'changed node')}")
        return passed(f"A test Job on {on} has completed since the change.", measured=measured)

    def _waits(self, targets: list[TargetEvidence], measured: dict[str, Any]) -> GateResult:
        nodes = tuple(target.name for target in targets)
        more = f" ({len(nodes)} nodes in all)" if nodes[1:] else ""
        if without := [one for one in targets if one.test_job is None and _is_settled(one) and not self._resource(one)]:
            named = names([target.name for target in without])
            asks = f"the test Job asks for {count(self.gpus, 'GPU')} as a resource, and {named} "
            offers = either(len(without), "offers", "offer")
            return wait(
                f"Nothing is tested: {asks}{offers} no such thing.", cause="no-resource", nodes=nodes, measured=measured
            )
        first = targets[0]
        if first.test_job is None:
            is_not = f"The test Job on {first.name} is not made yet: it is made once the node is back in order{more}."
            return wait(is_not, cause="not-made", nodes=nodes, measured=measured)
        if first.test_job.outcome == TestJobOutcome.UNKNOWN:
            nothing = f"The test Job on {first.name} showed nothing, and is made again{more}. {_told(first)}"
            return wait(nothing, cause="unknown", nodes=nodes, measured=measured)
        runs = f"The test Job on {first.name} is not through yet{more}. {_told(first)}"
        return wait(runs, cause="not-through", nodes=nodes, measured=measured)

    def _resource(self, target: TargetEvidence) -> str:
        return resource_of(target.allocatable, self.gpus)


def cordons_by(gates: Iterable[Gate]) -> bool:
    """Returns whether these gates keep released nodes cordoned until their test. An advisory gate does not."""
    return any(isinstance(gate, TestJobGate) and gate.cordon and not gate.advisory for gate in gates)


def _is_settled(target: TargetEvidence) -> bool:
    return target.is_seen and target.is_ready is True


def _told(target: TargetEvidence) -> str:
    """Returns what is known of the test, in our words and in the Job's."""
    if target.test_job is None:
        return ""
    said = target.test_job.said.strip()
    return f"{target.test_job.says} It said: {said}" if said else target.test_job.says
