"""The test Jobs of a plan: the newest on each node, and those that may exist in the cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from operations.test_jobs.test_progress import TIMED_OUT, TestJobOutcome
from rollouts.engine.snapshot import TestJobInCluster
from rollouts.gates.base import TestJobEvidence
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import Plan, Stage, Target, TestJob
from rollouts.queries.test_results import Baselines, baselines_of

GOES_ON = (StageState.PROMOTING, StageState.SOAKING)


@dataclass(frozen=True)
class PlanTestJobs:
    newest: Mapping[str, TestJob] = field(default_factory=dict)  # by node uid
    in_the_cluster: tuple[TestJobInCluster, ...] = ()
    baselines: Baselines = field(default_factory=Baselines)

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
        return TestJobEvidence(
            outcome,
            row.says,
            row.said,
            told_at=row.told_at,
            numbers=self.baselines.of(row),
            has_timed_out=row.says.startswith(TIMED_OUT),
            gpu_time=row.gpu_time,
        )


def read_test_jobs(plan: Plan, stages: Iterable[Stage]) -> PlanTestJobs:
    """Reads the test Jobs with one query, and one more if a gate compares their results; none without a test."""
    gates = [gate for stage in stages if TestJobGate.key in stage.gate_options for gate in stage.gates]
    asked = [gate for gate in gates if isinstance(gate, TestJobGate)]
    if not asked:
        return PlanTestJobs()
    rows = list(TestJob.objects.filter(plan=plan).order_by("pk"))
    there = tuple(
        TestJobInCluster(row.pk, row.node_uid, row.node_name, bool(row.outcome), row.trouble)
        for row in rows
        if row.gone_at is None
    )
    newest = {row.node_uid: row for row in rows}
    compares = any(rule.metric.worse_percent for gate in asked for rule in gate.rules)
    return PlanTestJobs(newest, there, baselines_of(plan, newest.values()) if compares else Baselines())
