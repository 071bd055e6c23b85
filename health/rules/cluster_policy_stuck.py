"""The ClusterPolicy stays notReady although all its operand pods are ready. Usually some use an old template."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import CLUSTER_POLICIES, PODS, ClusterFacts, Problem, Severity
from wording.lists import names
from wording.reports import EvidenceItem, fit

READ_LOG = ("Read the operator's log for the states that the condition names.", "Restart the operator's pod.")


@dataclass(frozen=True)
class ClusterPolicyStuck:
    key: ClassVar[str] = "cluster-policy-stuck"
    title: ClassVar[str] = "ClusterPolicy stays notReady"
    subject: ClassVar[str] = "ClusterPolicy"
    reads: ClassVar[tuple[str, ...]] = (PODS, CLUSTER_POLICIES)
    after: ClassVar[timedelta] = timedelta(minutes=15)  # the operator looks again every few minutes
    steps: ClassVar[tuple[str, ...]] = (
        "Compare the conditions (kubectl get clusterpolicy -o yaml) with the pods' controller-revision-hash.",
        "Drain a node with such a pod: kubectl drain --ignore-daemonsets",
        "Delete the node's pods of an older template.",
        "Uncordon the node, then continue with the next: kubectl uncordon",
    )

    def evaluate(self, cluster: ClusterFacts) -> Problem | None:
        stuck = cluster.stuck_policy
        if stuck is None:
            return None
        if stuck.older:
            cause = f"Pods of {names(stuck.older)} use an older template. Only a person replaces them."
        else:
            cause = "It does not wait for any observed pod. Its condition names the states."
        return Problem(
            severity=Severity.WARNING,
            title=fit("ClusterPolicy {} stays notReady", stuck.name),
            summary="All pods of its operands are ready. GPUs keep working, but the operator makes no further change.",
            evidence=(
                EvidenceItem("Ready pods", stuck.pods),
                EvidenceItem("Operands with an older template", ", ".join(stuck.older) or "none"),
                *((EvidenceItem("Condition", stuck.message),) if stuck.message else ()),
            ),
            causes=(cause,),
            steps=() if stuck.older else READ_LOG,
            identity=f"{stuck.name} {stuck.older}",
        )
