"""Every GPU that a user sees, in columns instead of objects.

Telemetry consists of snapshot columns. Only displayed GPUs are read whole (`reading.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from health.gpus.faults import Findings, FindingSeen
from health.gpus.roster_cache import ClusterGpus, SeenNode
from health.sources.cluster_telemetry import ClusterTelemetry
from health.telemetry.snapshot import NEVER


@dataclass
class Roster:
    """GPUs in columns, by cluster, node and index. `order` holds the positions of matching GPUs, in their order."""

    total: int  # that the person sees, wanted or not
    parts: Sequence[tuple[int, ClusterGpus]]  # by cluster; their columns follow one another
    nodes: Mapping[int, SeenNode]
    keys: Sequence[int]
    node_of: Sequence[int]
    index: Sequence[int]
    uuid: Sequence[str]
    product: Sequence[str]
    findings: Findings
    telemetry: Mapping[int, ClusterTelemetry]
    matching: int = 0  # that are wanted
    without_value: int = 0  # that might be: the metric that is asked about has no value of them to compare
    order: Sequence[int] = ()

    def board(self, at: int) -> int | None:
        """Returns the position among the boards of its cluster's snapshot; None if it is not there."""
        node = self.nodes[self.node_of[at]]
        return self.telemetry[node.cluster_id].boards.find(node.name, self.uuid[at], self.index[at])

    def finding(self, at: int) -> FindingSeen | None:
        node = self.node_of[at]
        return self.findings.of(node, self.index[at], self.uuid_of(at)) if node in self.findings.nodes else None

    def uuid_of(self, at: int) -> str:
        """Returns the UUID of its row, or else of its exporter; empty if unknown."""
        if self.uuid[at]:
            return self.uuid[at]
        board = self.board(at)
        return "" if board is None else self.telemetry_of(at).boards.every[board].uuid

    def telemetry_of(self, at: int) -> ClusterTelemetry:
        return self.telemetry[self.nodes[self.node_of[at]].cluster_id]

    def of_boards(self, column: Callable[[ClusterTelemetry], Sequence[float]]) -> list[float]:
        """Returns the value of each GPU's board in this column; NaN if it is in no snapshot."""
        found: list[float] = []
        for cluster, gpus in self.parts:
            telemetry = self.telemetry[cluster]
            said = [*column(telemetry), NEVER]  # the last for whom the frame does not have
            found += [said[place] for place in gpus.places(telemetry)]
        return found
