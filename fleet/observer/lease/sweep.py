"""The sweep that offers due leases of unwatched clusters, those with answers first.

Run by beat, and after a cluster is added.
"""

from datetime import datetime, timedelta

from fleet.messages import wake
from fleet.models import Cluster, Observer


def sweep(*, now: datetime) -> int:
    """Returns how many leases were offered. A lease that is offered twice is taken once."""
    for cluster_id in Cluster.objects.filter(observer__isnull=True).values_list("pk", flat=True):
        Observer.objects.get_or_create(cluster_id=cluster_id, defaults={"lease_until": now - timedelta(seconds=1)})
    due = list(Observer.objects.due(now=now).order_by("failures", "lease_until").values_list("cluster_id", "epoch"))
    for cluster_id, epoch in due:
        wake.wake_observer(cluster_id, epoch)
    return len(due)
