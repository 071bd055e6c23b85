"""The suspects of a plan: what its failed nodes share and its good nodes lack."""

from collections.abc import Sequence

from health.suspects import NodeOutcome, Suspects, suspects_of
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import Answer
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.lifecycle import TargetState
from rollouts.models import Plan, Stage, Target, TestJob
from rollouts.node_order.node_selection import FACTORS

ABOUT_WORKLOADS = frozenset(
    {WorkloadsReady.key, TestJobGate.key}
)  # a node without a workload tells nothing about these
COLUMNS = ("node_uid", "node_name", "state", "facts", "tenants_ready_at")


def plan_suspects(plan: Plan, stages: Sequence[Stage]) -> Suspects | None:
    """Returns the suspects among the plan's nodes; None if no node failed. At most two queries.

    Nodes count as failed by their state, or if a failing gate names them. `stages` have their gate results and targets
    loaded. A node that a failed workload does not run on counts as good only if another workload has passed there.
    """
    forward = [stage for stage in stages if not stage.is_rollback]
    failing = [
        answer
        for stage in forward
        for answer in stage.answers.all()
        if answer.answer == Answer.FAIL and not answer.is_advisory
    ]
    named = {name for answer in failing for name in answer.nodes}
    targets = [target for stage in forward for target in stage.targets.all()]
    if not named and not any(target.state == TargetState.FAILED for target in targets):
        return None
    needs_work = any(answer.gate in ABOUT_WORKLOADS and answer.nodes for answer in failing)
    proven = _proven(plan) if needs_work else frozenset()
    changed = Target.objects.forward().filter(stage__plan=plan, state__in=(TargetState.FAILED, TargetState.CHANGED))
    outcomes = []
    for uid, name, state, facts, tenants_ready_at in changed.order_by("position").values_list(*COLUMNS):
        failed = state == TargetState.FAILED or name in named
        if failed or not needs_work or tenants_ready_at or uid in proven:
            outcomes.append(NodeOutcome(name, failed, {title: facts.get(key, "") for key, title in FACTORS.items()}))
    return suspects_of(outcomes) if any(outcome.failed for outcome in outcomes) else None


def _proven(plan: Plan) -> frozenset[str]:
    passed = TestJob.objects.filter(plan=plan, outcome=TestJobOutcome.PASSED)
    return frozenset(passed.values_list("node_uid", flat=True))
