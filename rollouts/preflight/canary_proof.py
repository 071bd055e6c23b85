"""The proof that the nodes changed before a stage give about the nodes that are still to change (Z27, Z29).

A node counts as tested if a tenant's GPU pod was Ready on it since its change, or its newest test Job passed since. It
counts as failed by its state, or if a gate that fails names it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rollouts.gates.base import Answer
from rollouts.lifecycle import TargetState
from rollouts.models import GateAnswer, Stage, Target
from rollouts.node_order.node_selection import Candidate, bound_in_percent, bound_on_failure_rate, uncovered
from rollouts.preflight.stage_coverage import uncovered_sentence
from rollouts.queries.tested_nodes import has_run_since, newest_tests
from wording.numbers import count, either


@dataclass(frozen=True)
class CanaryProof:
    is_planned: bool  # True: no node has changed yet, so the numbers are those of the first stage
    changed: int  # nodes with the new driver, also failed ones
    tested: int  # of these: a workload has run, or they failed
    failed: int
    missing: list[str]  # one sentence for each kind of later nodes that no tested node has

    @property
    def failure_rate_at_most(self) -> float:
        """Returns the upper 95 % confidence bound of the failure rate of all nodes; 1 if nothing is tested."""
        return bound_on_failure_rate(self.tested, failed=self.failed)

    @property
    def sentence(self) -> str:
        most = f"{bound_in_percent(self.tested, failed=self.failed)} % (95 % confidence)"
        if self.is_planned:
            one, many = "the one canary node does not fail", f"none of {self.tested} canary nodes fails"
            return f"If {either(self.tested, one, many)}, the failure rate of all nodes is at most {most}."
        if not self.tested:
            return "No changed node is tested: no tenant's GPU pod was Ready there, and no test Job passed."
        found = f"{count(self.failed, 'failure')} of {count(self.tested, 'tested node')}"
        bound = f"{found} {either(self.failed, 'bounds', 'bound')} the failure rate at {most}."
        idle = self.changed - self.tested
        return f"{bound} {count(idle, 'changed node')} {either(idle, 'is', 'are')} not tested." if idle else bound


def proof_for(stage: Stage) -> CanaryProof | None:
    """Returns the proof of the plan for the approval of a stage; None for a rollback. Three queries."""
    if stage.is_rollback:
        return None
    of_plan = Target.objects.forward().filter(stage__plan=stage.plan_id).exclude(state=TargetState.EXCLUDED)
    targets = list(of_plan.order_by("stage__index", "position").defer("baseline"))
    is_planned = all(target.state == TargetState.HELD for target in targets)
    failed = set[int]()
    if is_planned:
        canary = tested = [target for target in targets if target.stage_id == targets[0].stage_id]
    else:
        canary = [each for each in targets if each.state in (TargetState.CHANGED, TargetState.FAILED)]
        tests = newest_tests(stage.plan_id)
        failing = GateAnswer.objects.filter(
            stage__plan=stage.plan_id, is_current=True, answer=Answer.FAIL, is_advisory=False
        )
        named = {name for names in failing.order_by().values_list("nodes", flat=True) for name in names}
        failed = {each.pk for each in canary if each.state == TargetState.FAILED or each.node_name in named}
        tested = [
            each
            for each in canary
            if each.pk in failed or has_run_since(each.state_since, each.tenants_ready_at, tests.get(each.node_uid))
        ]
    begun = {target.pk for target in canary}
    later = [target for target in targets if target.pk not in begun]
    missing = uncovered(_candidates(tested), _candidates(later))
    return CanaryProof(
        is_planned=is_planned,
        changed=len(canary),
        tested=len(tested),
        failed=len(failed),
        missing=[
            uncovered_sentence(*kind, number, "canary" if is_planned else "tested") for kind, number in missing.items()
        ],
    )


def _candidates(targets: Sequence[Target]) -> list[Candidate]:
    return [Candidate(target.node_uid, target.node_name, target.facts) for target in targets]
