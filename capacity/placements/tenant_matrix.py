"""The GPUs of a pool's nodes by tenant: who has each, where a source tells."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from fleet.allocation.allocations import Board, NodeAllocations
from fleet.allocation.gpu_holders import allocations_on
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Bookmark, Node, Pool
from fleet.models.node import members_of
from kube.resources import NODES, PODS
from people.models import User

NODES_AT_MOST = 200  # at a time


class GpuHolding(StrEnum):
    HELD = "held"  # by pods of one or several namespaces
    FREE = "free"
    CLOSED = "closed"  # free, on a node that is not ready or accepts no pods
    UNKNOWN = "unknown"  # a pod of the node has GPUs, and nothing tells which


@dataclass(frozen=True)
class MatrixGpu:
    index: int | None  # None: only its UUID is known
    uuid: str
    state: GpuHolding
    tenants: Sequence[str]  # namespaces with pods on it, in order
    pods: Sequence[str]  # namespace/name


@dataclass(frozen=True)
class MatrixNode:
    key: int
    name: str
    gpus: Sequence[MatrixGpu]
    unplaced: Sequence[str]  # namespaces of pods with GPUs that nothing tells

    @property
    def summary(self) -> list[tuple[str, int]]:
        """Returns the GPUs of each tenant, the most first. A shared GPU counts for each of them."""
        return Counter(tenant for gpu in self.gpus for tenant in gpu.tenants).most_common()

    def number(self, state: GpuHolding) -> int:
        return sum(gpu.state is state for gpu in self.gpus)


@dataclass(frozen=True)
class TenantMatrix:
    nodes: Sequence[MatrixNode]  # by name, at most `NODES_AT_MOST`
    number: int  # of nodes with GPUs in the pool
    as_of: datetime | None  # last update of the pods; None: they are current

    @property
    def tenants(self) -> list[tuple[str, int]]:
        """Returns the tenants of these nodes with their GPUs, the most first."""
        held = Counter(tenant for node in self.nodes for gpu in node.gpus for tenant in gpu.tenants)
        return sorted(held.items(), key=lambda each: (-each[1], each[0]))


def tenant_matrix(pool: Pool, user: User, *, now: datetime, after: str = "") -> TenantMatrix | None:
    """Returns the nodes that the user sees, behind the one of this name. None: nodes or pods were never read.

    Ten queries, and one for every 200 claims.
    """
    if not is_read(pool):
        return None
    rows = _gpu_nodes(pool, user)
    nodes = list(rows.filter(name__gt=after)[:NODES_AT_MOST])
    as_of = load_cluster_freshness(pool.cluster, now=now).pods_as_of
    return TenantMatrix(_matrix_nodes(nodes, now=now), rows.count(), as_of)


def is_read(pool: Pool) -> bool:
    """Tells whether the nodes and pods of its cluster were ever read. One query."""
    return Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name)


def every_node(pool: Pool, user: User, *, now: datetime) -> Iterator[MatrixNode]:
    """Yields all nodes by name. Four queries for every `NODES_AT_MOST`."""
    after = ""
    while nodes := list(_gpu_nodes(pool, user).filter(name__gt=after)[:NODES_AT_MOST]):
        yield from _matrix_nodes(nodes, now=now)
        after = nodes[-1].name


def _gpu_nodes(pool: Pool, user: User) -> Any:
    rows = Node.objects.visible_to(user).filter(cluster=pool.cluster_id, pk__in=members_of([pool.pk]))
    return rows.with_gpus().order_by("name")


def _matrix_nodes(nodes: Sequence[Node], *, now: datetime) -> list[MatrixNode]:
    found = allocations_on(nodes, now=now)
    return [_matrix_node(node, found[node.pk]) for node in nodes]


def _matrix_node(node: Node, its: NodeAllocations) -> MatrixNode:
    is_open = node.is_ready is True and not node.is_unschedulable
    unplaced = sorted({each.pod.namespace for each in its.unplaced if each.pod.is_tenant})
    gpus = [_matrix_gpu(board, is_open=is_open, may_be_held=bool(unplaced)) for board in its.boards]
    return MatrixNode(node.pk, node.name, gpus, unplaced)


def _matrix_gpu(board: Board, *, is_open: bool, may_be_held: bool) -> MatrixGpu:
    pods = [each.pod for each in board.allocations if not each.only_looks and each.pod.is_tenant]
    if pods:
        state = GpuHolding.HELD
    elif may_be_held:
        state = GpuHolding.UNKNOWN
    else:
        state = GpuHolding.FREE if is_open else GpuHolding.CLOSED
    tenants, names = sorted({pod.namespace for pod in pods}), sorted({str(pod) for pod in pods})
    return MatrixGpu(board.index, board.uuid, state, tenants, names)
