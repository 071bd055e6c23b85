"""The ClusterPolicy stays notReady although all its operand pods are ready. Usually some use an old template."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import CLUSTER_POLICIES, PODS, ClusterFacts, Severity, Wrong
from wording.lists import names
from wording.numbers import are, every


@dataclass(frozen=True)
class ClusterPolicyStuck:
    key: ClassVar[str] = "cluster-policy-stuck"
    title: ClassVar[str] = "ClusterPolicy stays notReady"
    subject: ClassVar[str] = "ClusterPolicy"
    reads: ClassVar[tuple[str, ...]] = (PODS, CLUSTER_POLICIES)
    after: ClassVar[timedelta] = timedelta(minutes=15)  # the operator looks again every few minutes

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        stuck = cluster.stuck_policy
        if stuck is None:
            return None
        if stuck.older:
            cause = f"Pods of {names(stuck.older)} use an older template. Only a person can replace them."
            action = "Delete these pods, one node at a time. Drain a node before its driver pod is deleted."
        else:
            cause = "It does not wait for any observed pod. Its condition names the states."
            action = "Read the operator's log for the states that the condition names, and restart the operator's pod."
        return Wrong(
            Severity.WARNING,
            f"ClusterPolicy {stuck.name} is notReady, while {every(stuck.pods, 'pod')} of its operands "
            f"{are(stuck.pods)} ready.",
            f"{action} GPUs keep working, but the operator makes no further change.",
            {"pods": stuck.pods, "of an older template": ", ".join(stuck.older), "said": stuck.message},
            why=f"{stuck.name} {stuck.older}",
            probable_cause=cause,
        )
