"""Creates test Jobs on changed nodes where a gate requires them, and deletes them all (Z8, Z27). Pure.

They are read in every state of the plan. No plan ends before the last deletion is read back.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.engine.decide.acts import Act, CreateTestJobs, Decision, MovePlan, TrackTestJobs
from rollouts.engine.decide.budget import is_back
from rollouts.engine.snapshot import Snapshot, StageSnapshot
from rollouts.gates.base import TargetEvidence
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import PLAN_FINAL, PlanState, StageState, TargetState
from wording.lists import names
from wording.numbers import are, either

SOON = timedelta(seconds=1)
AGAIN_AFTER = timedelta(minutes=1)  # after a Job without a result
LETS_RUN = (PlanState.PROMOTING, PlanState.HALTED)  # running Jobs are followed to their end


def with_test_jobs(snapshot: Snapshot, decision: Decision, *, now: datetime) -> Decision:
    acts = _acts(snapshot, now=now)
    if acts:
        decision = replace(decision, acts=(*decision.acts, *acts), look_again_in=min(decision.look_again_in, SOON))
    ends = any(isinstance(move, MovePlan) and move.to in PLAN_FINAL for move in decision.moves)
    if not ends or not snapshot.test_jobs:
        return decision
    there = sorted({one.name for one in snapshot.test_jobs})
    trouble = next((f" {one.trouble}" for one in snapshot.test_jobs if one.trouble), "")
    its = either(len(there), "the test Job", "the test Jobs")
    waits = f"The plan ends once {its} on {names(there)} {are(len(there))} deleted.{trouble}"
    return replace(decision, waiting_for=waits, moves=())


def _acts(snapshot: Snapshot, *, now: datetime) -> tuple[Act, ...]:
    made = tuple(
        CreateTestJobs(stage.index, due) for stage in snapshot.forward if (due := _due(snapshot, stage, now=now))
    )
    if not snapshot.test_jobs:
        return made
    return (*made, TrackTestJobs(_unwanted(snapshot)))


def _due(snapshot: Snapshot, stage: StageSnapshot, *, now: datetime) -> dict[str, str]:
    """Returns the nodes (uid → name) that need a test Job now."""
    gate = find_test_job_gate(stage)
    goes_on = snapshot.state is PlanState.PROMOTING and stage.state in (StageState.PROMOTING, StageState.SOAKING)
    if (
        gate is None
        or not goes_on
        or snapshot.stale_reason
        or snapshot.orders.stopped_reason
        or snapshot.orders.frozen_reason
    ):
        return {}
    busy = {one.uid for one in snapshot.test_jobs}
    changed = stage.in_state(TargetState.CHANGED)
    due = (one for one in changed if _is_due(one, now=now) and one.uid not in snapshot.orders.restrained)
    ready = (one for one in due if one.uid not in busy and is_back(one))
    return {one.uid: one.name for one in ready if gate.request_on(one.allocatable)[0]}


def _is_due(target: TargetEvidence, *, now: datetime) -> bool:
    test_job = target.test_job
    if test_job is None:
        return True
    is_over = test_job.told_at is not None and now - test_job.told_at >= AGAIN_AFTER
    return test_job.outcome is TestJobOutcome.UNKNOWN and is_over


def find_test_job_gate(stage: StageSnapshot) -> TestJobGate | None:
    return next((gate for gate in stage.gates if isinstance(gate, TestJobGate)), None)


def _unwanted(snapshot: Snapshot) -> frozenset[int]:
    """Returns Jobs of nodes that need no test any more: not changed, excluded, or the plan has turned back."""
    tested: set[str] = set()
    if snapshot.state in LETS_RUN:
        tested = {target.uid for stage in snapshot.forward for target in stage.in_state(TargetState.CHANGED)}
    return frozenset(one.pk for one in snapshot.test_jobs if one.uid not in tested)
