"""Tenants or test Jobs have worked on the changed nodes for long enough; an idle canary proves nothing (Z27).

Only observed work counts. A driver that crashes under load is found only by load, and the order of least disruption
takes idle nodes first. A passed test Job is load where there is no tenant: it counts with the GPU time of its
container, and with a GPU-minute at least, since many tests are shorter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import UNSEEN, Evidence, Gate, GateResult, Items, TargetEvidence, When
from rollouts.gates.results import OVERRIDE, no_target, passed, subject, to_come, wait, wait_for_cordoned_nodes
from wording.lists import names
from wording.numbers import count
from wording.reports import EvidenceItem

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Exposure(Gate):
    gpu_minutes: int = 60  # of work on the changed nodes of the stage, together
    nodes: int = 1  # nodes with at least one GPU-minute of it

    key: ClassVar[str] = "exposure"
    title: ClassVar[str] = "Exposure"
    when: ClassVar[When] = When.THROUGH

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gpu_minutes < 1 or self.nodes < 1:
            raise ValueError("gpu_minutes and nodes must be at least 1, so that the gate does not pass without work.")

    def evaluate(self, evidence: Evidence, *, now: object) -> GateResult:
        if not evidence.counted:
            return no_target()
        by_tenants = [(target, _tenants_time(target)) for target in evidence.changed]
        by_tests = [_tested(target) for target in evidence.changed]
        times = [(target, time + tested) for (target, time), tested in zip(by_tenants, by_tests, strict=True)]
        worked = [target for target, time in times if time >= MINUTE]
        minutes = sum((time for _, time in times), timedelta()) // MINUTE
        tests = sum(by_tests, timedelta()) // MINUTE
        shown = (
            EvidenceItem("Work", minutes, "GPU-min"),
            *([EvidenceItem("Of test Jobs", tests, "GPU-min")] if tests else []),
            EvidenceItem("Work needed", self.gpu_minutes, "GPU-min"),
            EvidenceItem("Nodes with work", names([target.name for target in worked]) or "none"),
            EvidenceItem("Nodes needed", self.nodes),
            *_sources(by_tenants),
        )
        if self.nodes > len(evidence.counted):
            title = f"The gate needs work on {count(self.nodes, 'node')}; the stage has {len(evidence.counted)}"
            steps = ("Set the option nodes of the gate to a smaller number.", *OVERRIDE)
            return wait(title, cause="too-few-nodes", evidence=shown, steps=steps, is_final=True)
        if not evidence.changed:
            return to_come(evidence, shown)
        title = f"{count(minutes, 'GPU-minute')} of work since the change"
        if minutes < self.gpu_minutes or len(worked) < self.nodes:
            return self._too_little(evidence, minutes, title, shown)
        if evidence.not_changed:
            return to_come(evidence, shown)
        return passed(title, f"Tenants or test Jobs worked on {count(len(worked), 'node')}.", evidence=shown)

    def _too_little(self, evidence: Evidence, minutes: int, title: str, shown: Items) -> GateResult:
        nodes = tuple(target.name for target in evidence.changed)
        if unseen := tuple(target.name for target in evidence.changed if not target.is_seen or target.work is None):
            title = f"The work on {subject(unseen)} cannot be seen"
            return wait(title, "Unseen work does not count.", cause=UNSEEN, nodes=unseen, evidence=shown)
        asked = f"The gate needs {count(self.gpu_minutes, 'GPU-minute')} on {count(self.nodes, 'node')} or more."
        if minutes:
            return wait(title, asked, cause="too-little", evidence=shown)
        if empty := wait_for_cordoned_nodes(evidence.changed, shown):
            return empty
        title = f"No tenant or test Job has used {subject(nodes)} since the change"
        return wait(title, asked, cause="idle", nodes=nodes, evidence=shown)


def _tenants_time(target: TargetEvidence) -> timedelta:
    """Returns the GPU time of tenants. Where utilisation counts, that of the test Job is in it, and is taken off."""
    if not (target.work and target.is_seen):
        return timedelta()
    of_test = target.test_job.gpu_time if target.test_job and target.work.has_telemetry else timedelta()
    return max(timedelta(), target.work.gpu_time - of_test)


def _tested(target: TargetEvidence) -> timedelta:
    job = target.test_job
    return max(MINUTE, job.gpu_time) if job and job.outcome is TestJobOutcome.PASSED else timedelta()


def _sources(times: Sequence[tuple[TargetEvidence, timedelta]]) -> Iterator[EvidenceItem]:
    """Yields how the time was counted: utilisation by complete hours, or allocated time without utilisation."""
    if busy := [target.name for target, _ in times if target.work and target.work.has_telemetry]:
        yield EvidenceItem("Counted by complete hours of utilisation", names(busy))
    worked = (target for target, time in times if time >= MINUTE)
    if allocated := [target.name for target in worked if not (target.work and target.work.has_telemetry)]:
        yield EvidenceItem("Counted as allocated time", names(allocated))
