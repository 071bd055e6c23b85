"""How long a tenant's pod took to be Ready on its node: what it needs once more wherever it goes (hazard Z16)."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

LEAST = timedelta(minutes=1)  # what is Ready sooner loads nothing that anybody waits for
MOST = timedelta(hours=4)  # what became Ready later was unready in between: how long it loads nobody knows. Ours


class Started(NamedTuple):
    """What tells it, of a pod."""

    is_ready: bool
    restarts: int
    started_at: datetime | None
    ready_since: datetime | None

    @property
    def took(self) -> timedelta | None:
        """None: it does not tell. One that restarted tells of its last container alone."""
        if not self.is_ready or self.restarts or self.started_at is None or self.ready_since is None:
            return None
        took = self.ready_since - self.started_at
        return took if took <= MOST else None


def workload_of(kind: str, namespace: str, owner: str, pod: str) -> str:
    """What makes its pods, as a sentence names it; the pod itself, where nothing does."""
    return f"{kind or 'Pod'} {namespace}/{owner or pod}"


def quickest(pods: Iterable[tuple[str, Started]]) -> dict[str, timedelta]:
    """By workload, of those that take long.

    Ready tells when it last turned. A pod that was unready in between, or whose container was made again, seems to have
    loaded for as long as that: so of each workload the quickest counts, and none that restarted.
    """
    found: dict[str, timedelta] = {}
    for workload, pod in pods:
        if (took := pod.took) is not None:
            found[workload] = min(took, found.get(workload, took))
    return {workload: took for workload, took in found.items() if took >= LEAST}
