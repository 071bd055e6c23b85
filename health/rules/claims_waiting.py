"""Pods wait for ResourceClaims whose devices no driver publishes. Pods that end do not free such devices."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import CLAIMS, PODS, SLICES, ClusterFacts, Severity, Wrong
from wording.numbers import count, either

NAMED = 2


@dataclass(frozen=True)
class ClaimsWaiting:
    key: ClassVar[str] = "claims-waiting"
    title: ClassVar[str] = "Unserved claims"
    subject: ClassVar[str] = "ResourceClaims"
    reads: ClassVar[tuple[str, ...]] = (PODS, SLICES, CLAIMS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # a driver that starts publishes within a minute

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        pods = sorted(cluster.claims_waiting, key=lambda pod: pod.name)
        if not pods:
            return None
        more = len(pods) - NAMED
        others = f" and {more} more" if more > 0 else ""
        named = ", ".join(pod.name for pod in pods[:NAMED])
        waits = either(len(pods), "waits for a claim", "wait for claims")
        return Wrong(
            Severity.WARNING,
            f"{count(len(pods), 'pod')} {waits} that no driver serves: {named}{others}.",
            pods[0].action,
            {pod.name: {"said": pod.message} for pod in pods[:20]},
            why=f"{pods[0].reason} {pods[0].action}",
            probable_cause=pods[0].reason,
        )
