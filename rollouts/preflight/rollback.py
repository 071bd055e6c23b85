"""Warnings before a rollback; they never block it (Z32)."""

from datetime import datetime

from fleet.freshness.cluster import why_unseen
from fleet.models import Node
from kube.resources import PODS
from rollouts.checks import Check
from rollouts.components.base import BEGUN
from rollouts.lifecycle import IN_FLIGHT, PlanState, TargetState
from rollouts.preflight.driver_facts import images_on, pod_facts, tenants_on
from rollouts.preflight.rules.cuda import too_new
from rollouts.queries.plan_view import PlanOnPage
from rollouts.verbs import VERBS

HAS_NEW = IN_FLIGHT | {TargetState.CHANGED, TargetState.FAILED}


def rollback_checks(on_page: PlanOnPage, *, now: datetime) -> list[Check]:
    """Returns warnings about pods that came since and may need the new driver. Four queries at most."""
    plan = on_page.plan
    if PlanState(plan.state) not in VERBS["rollback"].states:
        return []
    names = nodes_to_roll_back(on_page)
    if not names:
        return []
    pods = [pod_facts(pod) for pod in tenants_on(plan.cluster_id, names)]
    proven = images_on(plan.cluster_id, plan.from_version)
    found = list(too_new(pods, driver=plan.from_version, before=plan.to_version, proven=proven))
    if unseen := why_unseen(plan.cluster_id, PODS.name, now=now):
        title = f"Pods that need a newer driver than {plan.from_version} are not seen"
        steps = ("Restore the watch of pods, or ask their owners.",)
        found.append(Check("pods-unseen", title=title, summary=unseen, steps=steps))
    return found


def nodes_to_roll_back(on_page: PlanOnPage) -> set[str]:
    """Returns the nodes to roll back: released targets, and other nodes that differ from before. One query."""
    plan = on_page.plan
    ours = plan.holds.filter(is_foreign=False).values("node_uid")
    rows = Node.objects.filter(cluster=plan.cluster_id, uid__in=ours).values_list(
        "name", "reported_driver", "upgrade_state"
    )
    others = {
        name
        for name, driver, state in rows
        if driver not in {"", plan.from_version} or plan.its_component.phase(state) in BEGUN
    }
    return others.union(target.node_name for one in on_page.stages for target in one.targets if target.state in HAS_NEW)
