"""A person who does not wait until it is time to ask a cluster again."""

from fleet.messages import wake
from fleet.models import Cluster, Observer


def try_now(cluster: Cluster) -> None:
    epoch = Observer.try_now(cluster.pk)
    if epoch is not None:
        wake.wake_observer(cluster.pk, epoch)
