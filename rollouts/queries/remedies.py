"""The remedies for a gate without evidence, for page and REST (Z41)."""

from dataclasses import dataclass

from operations.pool_tests import has_image
from rollouts.gates.test_job import VECTOR_ADD, TestJobGate
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Stage, Verb
from rollouts.models.gate_answer import KeptAnswer
from rollouts.verbs import VERBS

GAINS_TEST_JOBS = frozenset({StageState.PROMOTING, StageState.SOAKING, StageState.HALTED})
TEST_JOB, OTHER_NODES, TENANTS, OVERRIDE = "test-job", "other-nodes", "tenants", "override"


@dataclass(frozen=True)
class Remedy:
    """One remedy. `resource` is where REST accepts it by POST; empty if nothing is sent."""

    key: str
    title: str
    text: str
    resource: str = ""
    why_not: str = ""  # why it cannot be chosen now; blank: it can be


def remedies(stage: Stage, answer: KeptAnswer) -> list[Remedy]:
    """Returns the remedies, cheapest first; none if the gate has proof or nobody waits for it."""
    if not answer.is_untested or stage.plan.is_final:
        return []
    place = f"/api/v1/stages/{stage.pk}"
    return [
        Remedy(
            TEST_JOB,
            "Add a test Job",
            "A Job uses a GPU of each changed node of this stage, and ends.",
            f"{place}/test-jobs",
            why_no_test_jobs(stage),
        ),
        Remedy(TENANTS, "Wait for tenants", "The gate passes once a tenant's GPU pod is Ready on these nodes."),
        Remedy(
            OTHER_NODES,
            "Pick other nodes",
            "Roll back, then draft a plan whose canary takes nodes with tenants.",
            f"/api/v1/plans/{stage.plan_id}/{VERBS[Verb.ROLLBACK].resource}",
        ),
        Remedy(
            OVERRIDE,
            "Override the gate",
            "This needs a reason, which the approver of the next stage sees.",
            f"{place}/break-glass",
        ),
    ]


def why_no_test_jobs(stage: Stage) -> str:
    plan = stage.plan
    if stage.is_rollback:
        return "A rollback runs no test Jobs."
    if plan.state not in {PlanState.PROMOTING, PlanState.HALTED} or stage.state not in GAINS_TEST_JOBS:
        return f"{stage.name} is {stage.state} in a plan that is {plan.state.replace('-', ' ')}."
    if TestJobGate.key in stage.gate_options:
        return f"{stage.name} already has test Jobs."
    if not has_image(VECTOR_ADD, cluster_id=plan.cluster_id, pool_id=stage.pool_id):
        return "No image for test Jobs is set. Set QUARTERDECK_TEST_JOB_IMAGE, or vectoradd of the pool's images."
    return ""
