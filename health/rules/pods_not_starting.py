"""Pods stay in ContainerCreating, or run and are not ready. Their Events give the reason if there are any."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import EVENTS, NODE, NODES, PODS, NodeFacts, Problem, Severity
from wording.numbers import count, either
from wording.reports import first_items, fit


@dataclass(frozen=True)
class PodsNotStarting:
    key: ClassVar[str] = "pods-not-starting"
    title: ClassVar[str] = "Pods do not become ready"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS, EVENTS)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # the rule reads pods that waited for ten minutes already
    steps: ClassVar[tuple[str, ...]] = (
        "Read the kubelet's message on the node's page, or run kubectl describe pod POD.",
        "If the pod waits for a claim, check the DRA driver's pod on the node.",
        "If the pod waits for a sandbox, check the container runtime and the toolkit.",
        "If the pod waits for a volume, check the claim and its attachments.",
        "If nothing is reported, a large image may still be pulled.",
    )

    def evaluate(self, node: NodeFacts) -> Problem | None:
        starting = (pod for pod in node.starting_pods if not (pod.operand and node.is_changing))
        pods = sorted(starting, key=lambda pod: pod.name)
        if not pods:
            return None
        number = f"{count(len(pods), 'pod')} {either(len(pods), 'does', 'do')}"
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} not become ready on {}", number, node.name),
            summary=pods[0].summary,
            evidence=first_items(pod.evidence for pod in pods),
            causes=pods[0].causes,
            steps=pods[0].steps,
            identity=" ".join((number, f"{pods[0].name} {pods[0].status}", *pods[0].causes, *pods[0].steps)),
        )
