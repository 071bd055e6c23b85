"""GPU pods of a workload wait for a node, or start, for longer than the class of their pools allows.

A pool's class sets the limit, and so do limits of its own. A pod without a node may use several pools: then the longest
limit of their classes holds, and the strictest of their own limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

from health.rules.base import PODS, WAITING, Problem, Severity, WaitingWorkload
from health.rules.limits import OURS, Limits, Scale, beyond
from wording.durations import spell
from wording.reports import EvidenceItem, fit, instant

# Minutes by workload class. Ours: a service is short of replicas while a pod waits; training queues for hours.
MINUTES: Mapping[str, float] = {"inference": 10, "development": 30, "mixed": 60, "training": 120}


@dataclass(frozen=True)
class PodsPendingLong:
    limits: Limits = field(default_factory=lambda: Limits(60))  # of pods that no pool takes

    key: ClassVar[str] = "pods-pending-long"
    title: ClassVar[str] = "Pods pending for long"
    subject: ClassVar[str] = WAITING
    reads: ClassVar[tuple[str, ...]] = (PODS,)
    limits_by_class: ClassVar[str] = "Its own, in minutes: inference 10, development 30, mixed 60, training 120."
    scale: ClassVar[Scale] = Scale("min", 1, 7 * 24 * 60)
    steps: ClassVar[tuple[str, ...]] = (
        "Open a pod of the workload. Its page shows the requirement that decides, and changes after which it fits.",
        "If the pods wait for others to end, ask the owner whether they may wait, or add nodes.",
    )

    @property
    def after(self) -> timedelta:
        return self.limits.warn_after

    def evaluate(self, waiting: WaitingWorkload) -> Problem | None:
        rule = self.of_classes(waiting.classes)
        minutes = waiting.longest.total_seconds() / 60
        if minutes < rule.limits.warn:
            return None
        limit = timedelta(minutes=rule.limits.reached(minutes))
        found = beyond(
            rule,
            minutes,
            title=fit("Pods of {} pending for over {}", waiting.name, spell(limit)),
            summary=waiting.reason,
            evidence=(
                EvidenceItem("Workload", waiting.name),
                EvidenceItem("Pending pods", waiting.pods),
                EvidenceItem("GPUs requested", waiting.gpus),
                instant("Waiting since", waiting.since),
                *waiting.evidence,
                instant("Compared at", waiting.since + waiting.longest),
            ),
            facts={"namespace": waiting.namespace, "owner": waiting.owner, "cluster": waiting.cluster},
        )
        is_note = not waiting.is_wrong and found.severity is Severity.WARNING
        return replace(
            found,
            severity=Severity.NOTE if is_note else found.severity,
            steps=waiting.steps,
            identity=f"{found.identity} {waiting.decided_by}",
            worsens_after=timedelta(0),
        )

    def of_classes(self, classes: frozenset[str]) -> "PodsPendingLong":
        """Returns the rule with the longest limit of these classes, unless a pool has limits of its own."""
        if self.limits.whose != OURS:
            return self
        warn = max((MINUTES[each] for each in classes if each in MINUTES), default=self.limits.warn)
        return replace(self, limits=replace(self.limits, warn=warn))
