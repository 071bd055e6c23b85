from datetime import datetime

from django.db import transaction

from fleet.models import Node, Pod
from people.models import AuditEntry, User
from rollouts.commands.refusals import Refusal
from rollouts.components.base import Phase
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Command, Hold, Plan, Target, Verb
from rollouts.queries.driver_nodes import driver_daemonsets, newest_hashes

GOES_ON = frozenset({PlanState.PROMOTING, PlanState.HALTED})
BEGUN = frozenset({StageState.PROMOTING, StageState.SOAKING, StageState.HALTED})


def retry(target: Target, *, actor: User, reason: str, now: datetime) -> None:
    """Holds a failed node again; it is released in a wave once the plan continues.

    :raises Refusal: when it has not failed, or a retry would be in vain
    """
    plan, who = target.stage.plan, actor.get_username()
    with transaction.atomic():
        target.stage.plan = Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        target.stage.refresh_from_db(fields=["state"])
        target.refresh_from_db(fields=["state"])
        if refusal := why_not_again(target):
            raise Refusal(refusal)
        target.move(TargetState.HELD, now=now, actor=who, reason=f"To be tried again. {reason}")
        Target.objects.filter(pk=target.pk).update(retried_at=now)
        Hold.objects.filter(plan=plan, node_uid=target.node_uid).update(is_wanted=True, wanted_since=now)
        Command.objects.create(plan=plan, verb=Verb.RETRY, actor=who, at=now, reason=reason)
        plan.say(f"{who} requested another try of {target.node_name}.")
        evidence = {"node": target.node_name, "stage": target.stage.name}
        AuditEntry.record(plan.mark, verb="retry", actor=who, reason=reason, evidence=evidence, now=now)
    plan.wake(now=now)


def why_not_again(target: Target) -> str:
    """Returns why a retry makes no sense now; empty if it does. Five queries at most."""
    stage, plan, name = target.stage, target.stage.plan, target.node_name
    if plan.is_final:
        return f"The plan is {plan.state}: its nodes cannot be tried again."
    if stage.is_rollback or plan.state == PlanState.ROLLING_BACK:
        return f"A rollback tries {name} three times by itself. Each resume allows three more tries."
    if plan.state not in GOES_ON or stage.state not in BEGUN:
        return (
            f"{stage.name} is {stage.state} in a plan that is {plan.state.replace('-', ' ')}: no node is "
            "released there."
        )
    if target.state != TargetState.FAILED:
        return f"{name} is {target.state}. Only a failed node can be tried again."
    node = Node.objects.filter(cluster=plan.cluster_id, uid=target.node_uid).first()
    if node is None:
        return f"{name} is no longer in {plan.cluster.name}. Exclude the node."
    if plan.its_component.phase(node.upgrade_state) is not Phase.FAILED:
        return f"The operator no longer reports {name} as failed. The plan follows the node without another try."
    if _has_its_pod(plan, node):
        there = (
            f"The driver pod for {plan.to_version} does not become Ready on {name}. Another try would find "
            "the same pod."
        )
        return (
            f"{there} Read the pod's log and delete the pod. The operator continues once the new pod is "
            "Ready. Or exclude the node."
        )
    return ""


def _has_its_pod(plan: Plan, node: Node) -> bool:
    daemonsets = [each.uid for each in driver_daemonsets(plan)]
    newest = newest_hashes(plan.cluster_id, daemonsets)
    pods = Pod.objects.filter(cluster=plan.cluster_id, node_name=node.name, owner_uid__in=daemonsets, deleted_at=None)
    return any(each.revision_hash and each.revision_hash == newest.get(each.owner_uid) for each in pods)
