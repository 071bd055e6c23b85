"""The nodes that a round of an operation works on, and the jobs on them: read once, for all of these nodes."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from operations.lifecycle import AT_ONCE_MOST, NodeProgress
from operations.models import Operation, OperationNode
from operations.tenants.jobs import jobs_by_node


class NodesInProgress:
    def __init__(self, operation: Operation, nodes: Sequence[OperationNode]) -> None:
        self.operation, self.nodes = operation, nodes
        self.at_once = operation.options.get("at_once") or AT_ONCE_MOST

    @property
    def running(self) -> Sequence[OperationNode]:
        """Returns the nodes that still run, with the results that this round has written."""
        return [node for node in self.nodes if node.state == NodeProgress.RUNNING]

    @cached_property
    def pending(self) -> frozenset[str]:
        """Returns the names of the next nodes. Linked ones have neighbouring positions, as `side_by_side` orders."""
        waiting = OperationNode.objects.filter(operation=self.operation, state=NodeProgress.PENDING)
        return frozenset(waiting.order_by("position").values_list("node_name", flat=True)[: 2 * self.at_once])

    @cached_property
    def jobs(self) -> Mapping[str, Mapping[tuple[str, str], str]]:
        """Returns the jobs of pods by node name, as `jobs_by_node`."""
        return jobs_by_node(self.operation.cluster_id, {*(node.node_name for node in self.nodes), *self.pending})
