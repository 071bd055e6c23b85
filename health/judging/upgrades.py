"""Whether the operator's queue of driver upgrades moves."""

from datetime import datetime

from fleet.models import Cluster, Node, NodeEvent
from gpu.upgrade_controller import UPGRADE_REQUIRED
from health.rules.upgrade_queue_still import STILL_FOR


def queued_for_upgrade(cluster: Cluster) -> int:
    """How many nodes wait in it that nobody holds. One query."""
    return Node.objects.filter(cluster=cluster, upgrade_state=UPGRADE_REQUIRED, is_held=False).with_gpus().count()


def upgrades_are_still(cluster: Cluster, *, now: datetime) -> bool:
    """One query."""
    return not NodeEvent.objects.filter(cluster=cluster, kind="upgrade", at__gt=now - STILL_FOR).exists()
