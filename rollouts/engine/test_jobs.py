"""The test Jobs of a plan: the newest on each node, and those that may exist in the cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.engine.snapshot import TestJobInCluster
from rollouts.gates.base import TestJobEvidence
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import Plan, Stage, Target, TestJob

GOES_ON = (StageState.PROMOTING, StageState.SOAKING)


@dataclass(frozen=True)
class PlanTestJobs:
    newest: Mapping[str, TestJob] = field(default_factory=dict)  # by node uid
    in_the_cluster: tuple[TestJobInCluster, ...] = ()

    def of(self, stage: Stage, target: Target, *, resumed_at: datetime) -> TestJobEvidence | None:
        """Returns the test result of the target since its change; None if there is none.

        A failure before the last resume does not count.
        """
        row = self.newest.get(target.node_uid)
        if row is None or target.state != TargetState.CHANGED or row.intended_at < target.state_since:
            return None
        is_before = row.told_at is not None and row.told_at < max(resumed_at, stage.state_since)
        if row.outcome == TestJobOutcome.FAILED and is_before and stage.state in GOES_ON:
            return None
        outcome = TestJobOutcome(row.outcome) if row.outcome else None
        return TestJobEvidence(outcome, row.says, row.said, told_at=row.told_at, value=row.value)


def read_test_jobs(plan: Plan, stages: Iterable[Stage]) -> PlanTestJobs:
    """Reads the test Jobs with one query; none if no stage asks for a test."""
    if not any(TestJobGate.key in stage.gate_options for stage in stages):
        return PlanTestJobs()
    rows = list(TestJob.objects.filter(plan=plan).order_by("pk"))
    there = tuple(
        TestJobInCluster(row.pk, row.node_uid, row.node_name, bool(row.outcome), row.trouble)
        for row in rows
        if row.gone_at is None
    )
    return PlanTestJobs({row.node_uid: row for row in rows}, there)
