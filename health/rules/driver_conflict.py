"""NVIDIADrivers with overlapping node selectors: the operator carries out none of them."""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NVIDIA_DRIVERS, ClusterFacts, Severity, Wrong
from wording.lists import names


@dataclass(frozen=True)
class DriversConflict:
    key: ClassVar[str] = "drivers-conflict"
    title: ClassVar[str] = "NVIDIADrivers conflict"
    subject: ClassVar[str] = "NVIDIADriver"
    reads: ClassVar[tuple[str, ...]] = (NVIDIA_DRIVERS,)
    after: ClassVar[timedelta] = timedelta(minutes=5)

    def evaluate(self, cluster: ClusterFacts) -> Wrong | None:
        conflict = cluster.driver_conflict
        if conflict is None:
            return None
        return Wrong(
            Severity.WARNING,
            f"The operator does not carry out NVIDIADriver {names(conflict.names)}. Two of them select the same node.",
            "Change the node selectors so that each node has one: before release 26.7, one without a selector takes "
            "every node. Then change a label of each that still says so: only a change makes the operator look again.",
            {"said": conflict.message},
            why=" ".join(conflict.names),
        )
