"""Find every cluster that nobody watches and whose time it is, and offer its lease: first of those that answer.

What beat does, and a new cluster waits for.
"""

from datetime import datetime, timedelta

from fleet.messages import wake
from fleet.models import Cluster, Observer


def sweep(*, now: datetime) -> int:
    """How many leases were offered. One that is offered twice is taken once."""
    for cluster_id in Cluster.objects.filter(observer__isnull=True).values_list("pk", flat=True):
        Observer.objects.get_or_create(cluster_id=cluster_id, defaults={"lease_until": now - timedelta(seconds=1)})
    due = list(Observer.objects.due(now=now).order_by("failures", "lease_until").values_list("cluster_id", "epoch"))
    for cluster_id, epoch in due:
        wake.wake_observer(cluster_id, epoch)
    return len(due)
