"""Pods stay in ContainerCreating, or run and are not ready. Their Events give the reason if there are any."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import EVENTS, NODE, NODES, PODS, NodeFacts, Severity, Wrong
from wording.numbers import count, either

NAMED = 2


@dataclass(frozen=True)
class PodsNotStarting:
    key: ClassVar[str] = "pods-not-starting"
    title: ClassVar[str] = "Pods do not become ready"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS, EVENTS)
    after: ClassVar[timedelta] = timedelta(minutes=1)  # they have waited for ten before they are read

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        pods = sorted(node.starting_pods, key=lambda pod: pod.name)
        if not pods:
            return None
        more = len(pods) - NAMED
        others = f"; and {more} more" if more > 0 else ""
        named = "; ".join(f"{pod.name} ({pod.status})" for pod in pods[:NAMED])
        does = either(len(pods), "does", "do")
        return Wrong(
            Severity.WARNING,
            f"{node.name}: {count(len(pods), 'pod')} {does} not become ready, {named}{others}.",
            pods[0].action or "Run kubectl describe on the pod to see the step that it waits for.",
            {pod.name: {"status": pod.status, "said": pod.message} for pod in pods[:20]},
            probable_cause=pods[0].reason,
        )
