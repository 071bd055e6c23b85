"""Wall-clock timestamps, cluster-time durations: actors may be quicker than life, what they note is when it was."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Clock:
    speed: float = 1.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, cluster_s: float) -> None:
        time.sleep(self.wall_s(cluster_s))

    def wall_s(self, cluster_s: float) -> float:
        """How long a duration of cluster time takes here."""
        return cluster_s / self.speed


def stamp(at: datetime) -> str:
    """metav1.Time on the wire: RFC 3339, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(at: datetime) -> str:
    """metav1.MicroTime on the wire, as Leases carry it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
