"""A test Job has passed on each changed node: synthetic load before tenants may return (Z8, Z27).

The engine creates the Jobs (`rollouts/engine/decide/test_jobs.py`) and keeps pods off until they complete
(`rollouts/engine/decide/cordons.py`). The gate reads their results, and waits for Jobs that are missing, running or
blocked.

A result is compared with earlier ones once for each Job: one look, which needs no correction for looking again.
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from operations.test_jobs.test_job import resource_of
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import FEWEST_PEERS, Evidence, Gate, GateResult, Items, TargetEvidence, When
from rollouts.gates.results import OVERRIDE, fail, no_target, passed, subject, to_come, wait
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items

PATH = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
PRINT_JSON = ("Let the Job print one JSON value at the start of a line, as the end of its output.", *OVERRIDE)
NO_PAST = ("Set at_least or at_most, and at_most_worse_percent to 0.", *OVERRIDE)
READ_JOB = ("Read the output of the Job.", "Then roll back, exclude the node, or resume the plan to run the Job again.")


@dataclass(frozen=True)
class TestJobGate(Gate):
    gpus: int = 1  # that each Job asks for; slices where the node has no whole ones
    image: str = ""  # blank: the one of the settings
    cordon: bool = True  # no other pod comes to a node from its release until its Job has completed
    command: str = ""  # of the container, as a shell splits it; blank: the image's own
    metric: str = ""  # path of a number in the JSON that the Job prints last, such as testcases.0.sum
    at_least: int = 0  # of the metric
    at_most: int = 0  # of the metric; 0: no limit
    at_most_worse_percent: int = 0  # than the node with another driver, or its peers; 0: not compared
    higher_is_better: bool = True  # of the metric

    key: ClassVar[str] = "test_job"
    title: ClassVar[str] = "Test Job"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gpus < 1:
            raise ValueError("gpus must be at least 1, because a Job without a GPU does not test GPUs.")
        if any(each.isspace() for each in self.image):
            raise ValueError("image must be the name of one image, without blanks.")
        try:
            shlex.split(self.command)
        except ValueError as error:
            raise ValueError("command cannot be split into words: a quotation mark is open.") from error
        if self.metric and not PATH.fullmatch(self.metric):
            raise ValueError("metric is a path in JSON, such as testcases.0.sum.")
        if bool(self.metric) is not bool(self.at_least or self.at_most or self.at_most_worse_percent):
            raise ValueError("metric needs at_least, at_most or at_most_worse_percent; each of these needs metric.")
        if self.at_most and self.at_most < self.at_least:
            raise ValueError("at_most is less than at_least, so no number can pass.")

    def evaluate(self, evidence: Evidence, *, now: object) -> GateResult:
        if not evidence.counted:
            return no_target()
        changed = evidence.changed
        by_outcome = {
            outcome: [one for one in changed if one.test_job and one.test_job.outcome == outcome]
            for outcome in TestJobOutcome
        }
        done = by_outcome[TestJobOutcome.PASSED]
        counts: Items = (
            EvidenceItem("Completed test Jobs", len(done)),
            EvidenceItem("Nodes of the stage", len(evidence.counted)),
        )
        if failed := by_outcome[TestJobOutcome.FAILED]:
            nodes = tuple(target.name for target in failed)
            is_late = failed[0].test_job is not None and failed[0].test_job.has_timed_out
            title = f"The test Job {'timed out' if is_late else 'failed'} on {subject(nodes)}"
            summary = _job_text(failed[0])
            items = (*counts, *_results(failed))
            return fail(
                title, summary, cause="timed-out" if is_late else "failed", nodes=nodes, evidence=items, steps=READ_JOB
            )
        if self.metric:
            counts = (
                *counts,
                *self._limits(),
                *first_items(EvidenceItem(name, value) for name, value in _results_of_jobs(done)),
            )
            if bad := [(name, value) for name, value in _results_of_jobs(done) if not self._is_within(value)]:
                return self._fails_by_metric(bad, counts)
            counts = (*counts, *self._changes(done))
            if worse := [
                (name, change) for name, change in self._compared(done) if change > self.at_most_worse_percent
            ]:
                return self._fails_by_past(worse, counts)
        if open_ones := [one for one in changed if not one.test_job or one.test_job.outcome != TestJobOutcome.PASSED]:
            return self._waits(open_ones, counts)
        if self.metric and (silent := tuple(one.name for one in done if one.test_job and one.test_job.value is None)):
            title, summary = f"The test Job on {subject(silent)} printed no result", f"No number is at {self.metric}."
            return wait(title, summary, cause="no-number", nodes=silent, evidence=counts, steps=PRINT_JSON)
        if few := tuple(one.name for one in done if self.at_most_worse_percent and not _baseline(one)):
            title = f"The test Job on {subject(few)} has too few results to compare"
            summary = f"The gate needs a result of the node with another driver, or results of {FEWEST_PEERS} peers."
            return wait(title, summary, cause="few-results", nodes=few, evidence=counts, steps=NO_PAST)
        if evidence.not_changed or not changed:
            return to_come(evidence, counts)
        title = f"A test Job completed on {either(len(done), 'the changed node', f'all {len(done)} changed nodes')}"
        return passed(title, "Each Job used GPUs with the new driver.", evidence=counts)

    def _is_within(self, value: float) -> bool:
        return value >= self.at_least and not (self.at_most and value > self.at_most)

    def _compared(self, done: Iterable[TargetEvidence]) -> list[tuple[str, float]]:
        """Returns by how many percent each result is worse than its baseline; below 0 it is better."""
        found = []
        for target in done if self.at_most_worse_percent else ():
            base, value = _baseline(target), target.test_job.value if target.test_job else None
            if base and value is not None:
                worse = (base - value if self.higher_is_better else value - base) / abs(base) * 100
                found.append((target.name, worse))
        return found

    def _changes(self, done: Iterable[TargetEvidence]) -> Items:
        of_base = {target.name: target for target in done}
        items = (
            EvidenceItem(
                f"{name}: worse by", f"{worse:.1f} % than {_baseline(of_base[name]):g} ({_basis_text(of_base[name])})"
            )
            for name, worse in self._compared(of_base.values())
        )
        limit = (
            (EvidenceItem("Worse by at most", self.at_most_worse_percent, "%"),) if self.at_most_worse_percent else ()
        )
        return (*limit, *first_items(items))

    def _fails_by_past(self, bad: list[tuple[str, float]], counts: Items) -> GateResult:
        nodes = tuple(name for name, _ in bad)
        title = f"The result of the test Job on {subject(nodes)} is worse than before"
        summary = (
            f"{'' if len(bad) == 1 else f'{nodes[0]}: '}{self.metric} is {bad[0][1]:.0f} % worse than its baseline."
        )
        return fail(title, summary, cause="worse", nodes=nodes, evidence=counts, steps=READ_JOB)

    def _limits(self) -> Items:
        limits = {"At least": self.at_least, "At most": self.at_most}
        return (EvidenceItem("Metric", self.metric), *(EvidenceItem(name, is_) for name, is_ in limits.items() if is_))

    def _fails_by_metric(self, bad: list[tuple[str, float]], counts: Items) -> GateResult:
        nodes = tuple(name for name, _ in bad)
        title = f"The result of the test Job on {subject(nodes)} is out of its limits"
        summary = f"{'' if len(bad) == 1 else f'{nodes[0]}: '}{self.metric} is {bad[0][1]:g}."
        return fail(title, summary, cause="metric", nodes=nodes, evidence=counts, steps=READ_JOB)

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
            return wait(title, _job_text(first), cause="unknown", nodes=nodes, evidence=items)
        title = f"The test Job on {subject(nodes)} has not completed"
        return wait(title, _job_text(first), cause="not-through", nodes=nodes, evidence=items)

    def _resource(self, target: TargetEvidence) -> str:
        return resource_of(target.allocatable, self.gpus)


def cordons_by(gates: Iterable[Gate]) -> bool:
    """Returns whether these gates keep released nodes cordoned until their test. An advisory gate does not."""
    return any(isinstance(gate, TestJobGate) and gate.cordon and not gate.advisory for gate in gates)


def _results_of_jobs(targets: Iterable[TargetEvidence]) -> list[tuple[str, float]]:
    """Returns the result of each test Job with one."""
    jobs = ((target.name, target.test_job) for target in targets)
    return [(name, job.value) for name, job in jobs if job is not None and job.value is not None]


def _baseline(target: TargetEvidence) -> float | None:
    """Returns the median of the node's results with other drivers, else of at least four peers; None: too few."""
    job = target.test_job
    if job is None or not (job.past or len(job.peers) >= FEWEST_PEERS):
        return None
    return median(job.past or job.peers) or None


def _basis_text(target: TargetEvidence) -> str:
    job = target.test_job
    past, peers = (len(job.past), len(job.peers)) if job else (0, 0)
    return f"{count(past, 'earlier result')} of the node" if past else count(peers, "peer")


def _is_settled(target: TargetEvidence) -> bool:
    return target.is_seen and target.is_ready is True


def _job_text(target: TargetEvidence) -> str:
    """Returns the state of a test Job with its last output."""
    return f"{target.test_job.says} {target.test_job.said.strip()}".strip() if target.test_job else ""


def _results(targets: Iterable[TargetEvidence]) -> Items:
    """Returns the last output of each test Job, or the state of a Job without output."""
    jobs = ((target.name, target.test_job) for target in targets if target.test_job)
    return first_items(EvidenceItem(node, job.said.strip() or job.says) for node, job in jobs)
