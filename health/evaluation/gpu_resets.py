"""Which GPUs were reset by themselves: as the timelines of their nodes have it."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from fleet.history.lines import RESET
from fleet.models import Cluster, NodeEvent


class GpuReset(NamedTuple):
    node_uid: str
    gpu: int  # its index
    at: datetime


def resets_of(cluster: Cluster, node_uids: Collection[str], *, since: datetime, until: datetime) -> list[GpuReset]:
    """Without those of several GPUs of a node at one moment: they say more of the node, or of its driver. One query."""
    events = NodeEvent.objects.filter(cluster=cluster, node_uid__in=node_uids, at__gt=since, at__lte=until, kind=RESET)
    told = [
        GpuReset(uid, detail["gpu"], at)
        for uid, at, detail in events.order_by().values_list("node_uid", "at", "detail")
    ]
    together = Counter((one.node_uid, one.at) for one in told)
    return [one for one in told if together[one.node_uid, one.at] == 1]
