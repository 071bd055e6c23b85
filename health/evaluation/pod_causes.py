"""The causes of pods that fail or do not start, as the facts of rules."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from fleet.models import Node, Pod
from fleet.pod_reasons import PodReason
from health.rules.base import FailingPod
from health.stack import read_stacks
from health.stack.causes import Cause, Weight

NODES_AT_MOST = 20  # nodes whose operands are explained
# Only the pod's own report is known. Its title contains a growing number.
UNEXPLAINED = (
    "stuck",
    "tenant_crashed",
    "tenant_failed",
    "refused_by_kubelet",
    "tenant_not_ready",
    "crashed",
    "evicted",
)


def explained(pod: FailingPod, known: Cause | PodReason) -> FailingPod:
    return replace(pod, cause=known.sentence, steps=known.steps, message=known.quote, trouble=known.trouble)


def explained_by_cause(pod: FailingPod, known: Cause | PodReason) -> FailingPod:
    """Returns the pod with its cause; without a known cause, with the pod's own message."""
    if known.key not in UNEXPLAINED:
        return explained(pod, known)
    steps = known.steps if pod.operand else ()
    return replace(pod, steps=steps, message=known.quote, trouble=known.said) if known.said else pod


def causes_of_operands(pods: Sequence[Pod], *, now: datetime) -> Mapping[str, Cause]:
    """Returns by pod the cause that a person has to fix. Nine queries if there is any pod."""
    keys = sorted({pod.node_id for pod in pods if pod.node_id})[:NODES_AT_MOST]
    nodes = list(Node.objects.filter(pk__in=keys)) if keys else []
    stacks = read_stacks(nodes, now=now).values() if nodes else ()
    rows = (row for stack in stacks for row in stack.operands)
    return {row.pod: row.cause for row in rows if row.cause and row.cause.weight is Weight.WRONG}
