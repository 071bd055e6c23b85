"""The warm-up of tenants' pods: the time until Ready, needed again on another node (Z16)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

LEAST = timedelta(minutes=1)  # pods that are Ready sooner load nothing
# pods that became Ready later were unready in between, so their load time is unknown; our limit
MOST = timedelta(hours=4)


class Started(NamedTuple):
    is_ready: bool
    restarts: int
    started_at: datetime | None
    ready_since: datetime | None

    @property
    def took(self) -> timedelta | None:
        """Returns the warm-up; None if unknown. A restarted pod shows only its last container's."""
        if not self.is_ready or self.restarts or self.started_at is None or self.ready_since is None:
            return None
        took = self.ready_since - self.started_at
        return took if took <= MOST else None


def workload_of(kind: str, namespace: str, owner: str, pod: str) -> str:
    return f"{kind or 'Pod'} {namespace}/{owner or pod}"


def quickest(pods: Iterable[tuple[str, Started]]) -> dict[str, timedelta]:
    """Returns the shortest warm-up of each slow workload.

    Ready shows only its last change, so a pod that was unready meanwhile seems slower. Restarted pods do not count.
    """
    found: dict[str, timedelta] = {}
    for workload, pod in pods:
        if (took := pod.took) is not None:
            found[workload] = min(took, found.get(workload, took))
    return {workload: took for workload, took in found.items() if took >= LEAST}
