"""The last dry runs of evictions on chosen nodes, for the preview of their drain."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.models import Cluster, Node
from operations.lifecycle import NodeProgress
from operations.models import OperationNode

RECENT = timedelta(hours=1)  # budgets change with every pod that starts


@dataclass(frozen=True)
class EvictionTrial:
    operation: int  # key of the latest operation of these nodes
    at: datetime  # of the earliest result
    nodes: int
    tried: int  # evictions
    refused: int  # or without an answer
    untried: int  # beyond the limit of a node


def trial_of(cluster: Cluster, nodes: Sequence[Node], *, now: datetime) -> EvictionTrial | None:
    """Returns the latest result of each node within the last hour. None: nobody tried."""
    rows = OperationNode.objects.of_kinds("try-drain").filter(
        operation__cluster=cluster,
        node_uid__in=[node.uid for node in nodes],
        state=NodeProgress.DONE,
        state_since__gte=now - RECENT,
    )
    latest = list({row.node_uid: row for row in rows.order_by("pk")}.values())
    if not latest:
        return None
    return EvictionTrial(
        operation=max(row.operation_id for row in latest),
        at=min(row.state_since for row in latest),
        nodes=len(latest),
        tried=sum(row.progress["tried"] for row in latest),
        refused=sum(row.progress["refused"] for row in latest),
        untried=sum(row.progress.get("untried", 0) for row in latest),
    )
