"""Deletion of one pod past one named budget: the last offer of a blocked drain (Z12, lifecycle R29).

Another person approves it. The pod is named by its UID and keeps its own grace period. If the budget allows the
eviction by now, the pod is evicted instead. A pod that another budget keeps is left alone: nobody approved that.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from fleet.models import Node
from kube import client
from operations.refusals import BadOperation
from operations.steps.base import NodeStep, NodeWork, StepResult, done_result, failed, wait
from operations.steps.drain import ask_eviction, budget_in, grace_left, pods_on
from operations.steps.evictions import LEFT_ALONE, STUCK_AFTER, PodOnNode
from operations.steps.options import TextOption
from people.models import AuditEntry

AGAIN_AFTER = timedelta(seconds=5)
RIGHT = "Quarterdeck may not delete pods in this cluster. An admin may apply deploy/rbac/delete-pods.yaml."


class DeletePodStep(NodeStep):
    key: ClassVar[str] = "delete_pod"
    options = (
        TextOption(
            "pod", "Pod, as namespace/name", "Of the kind delete-pod: the pod, as namespace/name.", is_linked=True,
            longest=320, is_wide=True,
        ),
        TextOption(
            "pod_uid", "UID of the pod", "Of the kind delete-pod: its UID.", is_linked=True, in_preview=True,
            longest=64, is_wide=True,
        ),
        TextOption(
            "budget", "PodDisruptionBudget that refuses it",
            "Of the kind delete-pod: name of the PodDisruptionBudget that refuses the eviction.", is_linked=True,
            longest=253, is_wide=True,
        ),
    )  # fmt: skip
    effect: ClassVar[str] = "One pod is deleted past its budget, within its own grace period."
    needs_approval: ClassVar[str] = "A pod is deleted past its PodDisruptionBudget. Another person approves it."
    waits_for_freeze: ClassVar[bool] = True

    def named_pod(self, options: Mapping[str, Any]) -> str:
        return options.get("pod_uid") or ""

    def complete(self, options: Mapping[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
        for option in self.options:
            if not options.get(option.name) or len(options[option.name]) > option.longest:
                raise BadOperation(
                    (option.name, "Name the pod with its namespace, its UID, and the budget that refuses it.")
                )
        if options["pod"].count("/") != 1:
            raise BadOperation(("pod", "Name the pod as namespace/name."))
        return dict(options)

    def run(self, work: NodeWork) -> StepResult:
        options = work.operation.options
        node = work.read_node()
        if not node.is_unschedulable:
            return failed("The node is not cordoned, so its pod could return. Quarantine it first.")
        pod = next((each for each in pods_on(work) if each.uid == options["pod_uid"]), None)
        if pod is None:
            return done_result(f"{options['pod']} is gone.")
        if pod.title != options["pod"]:
            return failed(f"The pod with this UID is {pod.title}, not {options['pod']}.")
        if pod.ends_at is not None:
            return _until_gone(pod, work)
        if pod.owner_kind in LEFT_ALONE:
            return failed(f"{pod.title} is {LEFT_ALONE[pod.owner_kind]}: it starts again at once.")
        return _end(work, pod, options["budget"])


def _end(work: NodeWork, pod: PodOnNode, budget: str) -> StepResult:
    """Evicts the pod if its budget allows it by now, else deletes it past that budget alone."""
    state, reason = ask_eviction(work.connection, pod, is_dry_run=True)
    if state == "asked":
        work.guard()
        state, reason = ask_eviction(work.connection, pod)
        if state == "asked":
            return wait(f"The budget allows it now: {pod.title} is {reason}.", again_after=AGAIN_AFTER)
        if state in ("refused", "no answer"):
            return wait(f"{pod.title} is not evicted yet: {reason}", again_after=AGAIN_AFTER)
    if state == "gone":
        return done_result(f"{pod.title} is gone.")
    if state != "refused":
        return failed(f"{pod.title} is not deleted: {reason}")
    if budget_in(reason) != budget:
        return failed(f"{pod.title} is not deleted: the approval covers budget {budget} only. {reason}")
    return _delete(work, pod, budget)


def _delete(work: NodeWork, pod: PodOnNode, budget: str) -> StepResult:
    """Records the intent, then deletes the pod: a lost answer or a dead worker leaves the entry."""
    operation = work.operation
    work.guard()
    evidence = {"pod": pod.title, "pod_uid": pod.uid, "budget": budget, "node": work.node.node_name}
    AuditEntry.record(
        operation.mark, verb="operation.delete-pod", actor=operation.asked_by, reason=operation.reason,
        evidence=evidence, now=work.clock(),
    )  # fmt: skip
    try:
        client.delete_pod(work.connection, pod.namespace, pod.name, uid=pod.uid)
    except (client.Absent, client.Conflict):
        return done_result(f"{pod.title} is gone.")
    except client.Forbidden as refusal:
        return failed(f"{RIGHT} {refusal}")
    except client.Refused as refusal:
        return failed(f"{pod.title} is not deleted: {refusal}")
    return wait(f"{pod.title} is deleted past budget {budget}, within its grace period.", again_after=AGAIN_AFTER)


def _until_gone(pod: PodOnNode, work: NodeWork) -> StepResult:
    left = grace_left(pod, work.clock())
    if left < -STUCK_AFTER:
        return failed(f"{pod.title} did not end within its grace period. Check its finalizers and volumes.")
    return wait(f"{pod.title} is ending.", again_after=AGAIN_AFTER)
