"""A NVIDIADriver stays notReady while all its driver pods are ready. Usually they use an older template."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NVIDIA_DRIVERS, PODS, ClusterFacts, Severity, Wrong
from wording.numbers import are, either, every


@dataclass(frozen=True)
class DriverObjectStuck:
    key: ClassVar[str] = "driver-object-stuck"
    title: ClassVar[str] = "NVIDIADriver stays notReady"
    subject: ClassVar[str] = "NVIDIADriver"
    reads: ClassVar[tuple[str, ...]] = (PODS, NVIDIA_DRIVERS)
    after: ClassVar[timedelta] = timedelta(minutes=15)  # the operator looks again every few minutes

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        """Returns the trouble of the first by name. A cluster has few."""
        stuck = min(cluster.stuck_drivers, key=lambda each: each.name, default=None)
        if stuck is None:
            return None
        old = f"{stuck.older} of its driver pods {are(stuck.older)} of an older template" if stuck.older else (
            "Its driver pods were probably created before it changed"
        )  # fmt: skip
        them = either(stuck.pods, "the driver pod", "the driver pods, one node at a time")
        return Wrong(
            Severity.WARNING,
            f"NVIDIADriver {stuck.name} is notReady, while {every(stuck.pods, 'driver pod')} of it {are(stuck.pods)} "
            "ready.",
            f"Drain the node and delete {them}: the DaemonSet creates it again from the newest template, and the "
            "driver is reloaded. Until then the operator waits, and GPUs keep working.",
            {"pods": stuck.pods, "of an older template": stuck.older, "said": stuck.message},
            probable_cause=f"{old}: the operator waits for pods of the newest, and restarts none where only its "
            "nodeSelector or labels changed (gpu-operator #1661).",
        )
