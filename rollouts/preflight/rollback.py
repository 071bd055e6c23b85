"""What a person must know before a plan is rolled back: it hinders nobody from that (hazard Z32)."""

from rollouts.checks import Check
from rollouts.lifecycle import IN_FLIGHT, PlanState, TargetState
from rollouts.preflight.reading import images_on, pod_facts, pods_on
from rollouts.preflight.rules.cuda import too_new
from rollouts.reads.on_page import PlanOnPage
from rollouts.verbs import VERBS

HAS_NEW = IN_FLIGHT | {TargetState.CHANGED, TargetState.FAILED}


def rollback_checks(on_page: PlanOnPage) -> list[Check]:
    """Pods came to the changed nodes since, and may need what the old driver does not run. Two queries at most."""
    plan = on_page.plan
    if PlanState(plan.state) not in VERBS["rollback"].states:
        return []
    names = {target.node_name for one in on_page.stages for target in one.targets if target.state in HAS_NEW}
    if not names:
        return []
    pods = [pod_facts(pod) for pod in pods_on(plan.cluster_id, names)]
    proven = images_on(plan.cluster_id, plan.from_version)
    return list(too_new(pods, driver=plan.from_version, before=plan.to_version, proven=proven))
