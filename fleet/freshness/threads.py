"""The capacity of observing workers: threads, use, and advice."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, Sum

from fleet.models import Cluster, ObservingWorker
from wording.numbers import count

WORKERS = "the workers of the queue “observe”"


@dataclass(frozen=True)
class Threads:
    workers: int
    total: int
    in_use: int  # held leases
    clusters: int  # includes clusters that back off: they need a thread once they answer

    @property
    def action(self) -> str:
        if not self.workers:
            return "No worker of the queue “observe” reports. Start a worker with a thread for each cluster."
        ratio = f"{count(self.total, 'thread')} for {count(self.clusters, 'cluster')}"
        if self.in_use and self.clusters > self.total:
            return f"{ratio}. Increase -c of {WORKERS}, or start another worker."
        return f"{ratio}, {self.in_use} in use. Check whether Redis answers, and read the log of {WORKERS}."


def threads(*, now: datetime) -> Threads:
    """Returns the capacity. Two queries."""
    reporting = ObservingWorker.objects.filter(lease_until__gte=now)
    said = reporting.aggregate(workers=Count("pk"), total=Sum("threads", default=0))
    in_use = Count("pk", filter=Q(observer__lease_until__gte=now))
    return Threads(**said, **Cluster.objects.order_by().aggregate(in_use=in_use, clusters=Count("pk")))
