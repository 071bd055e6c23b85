"""Requested CPU and memory per node: sums over bound pods, with full or reduced rows."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Case, Q, QuerySet, Sum, Value, When

from fleet.allocation.counters import count_written_nodes
from fleet.allocation.cpu_memory import REQUESTED
from fleet.models import Node, OtherPod, Pod
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.upsert import Written
from fleet.observer.persistence.upsert_statement import update

COUNTED = ("node_name", "cpu_m", "memory_bytes", "is_tenant", "operand")
BY = Case(
    When(~Q(operand=""), then=Value("operands")),
    When(is_tenant=True, then=Value("tenants")),
    default=Value("others"),
)
RequestsByNode = dict[str, dict[str, int]]  # by node name and column
DifferingRequests = dict[int, tuple[int, ...]]  # by node key: the amounts in the order of the columns


def touched_by(written: Written) -> set[str]:
    """Returns the nodes whose sums may have changed."""
    rows: list[Columns] = [*written.new, *written.gone]
    for old, new in written.changed:
        if any(old[column] != new[column] for column in COUNTED if column in new):
            rows += (old, new)
    return {row["node_name"] for row in rows if row["node_name"] and (row["cpu_m"] or row["memory_bytes"])}


def bound_to(cluster_id: int, names: Collection[str]) -> set[str]:
    others = OtherPod.objects.filter(cluster_id=cluster_id, node_name__in=names)
    return set(others.order_by().values_list("node_name", flat=True))


def count(cluster_id: int, names: Collection[str]) -> None:
    """Recounts these nodes in the transaction that wrote the pods."""
    if names:
        write(cluster_id, differing(cluster_id, names))


def write(cluster_id: int, wrong: DifferingRequests) -> None:
    with count_written_nodes(cluster_id, wrong):
        update(Node, REQUESTED, ((*amounts, node_id) for node_id, amounts in wrong.items()))


def differing(cluster_id: int, names: Collection[str] | None) -> DifferingRequests:
    """Returns the right sums of nodes with outdated ones. Three queries. `names` limits the nodes; None: all."""
    nodes: QuerySet = Node.objects.filter(cluster_id=cluster_id)
    kept: QuerySet = Pod.objects.filter(cluster_id=cluster_id).exclude(node_name="").annotate(by=BY)
    others: QuerySet = OtherPod.objects.filter(cluster_id=cluster_id).annotate(by=Value("others"))
    if names is not None:
        nodes, kept = nodes.filter(name__in=names), kept.filter(node_name__in=names)
        others = others.filter(node_name__in=names)
    sums: RequestsByNode = defaultdict(lambda: dict.fromkeys(REQUESTED, 0))
    for pods in (kept, others):
        _add(sums, pods.order_by())
    wrong: DifferingRequests = {}
    for node_id, name, *was in nodes.order_by().values_list("id", "name", *REQUESTED):
        wanted = tuple(sums[name][column] for column in REQUESTED)
        if wanted != tuple(was):
            wrong[node_id] = wanted
    return wrong


def _add(sums: RequestsByNode, pods: QuerySet) -> None:
    rows = pods.values_list("node_name", "by").annotate(Sum("cpu_m"), Sum("memory_bytes"))
    for node, by, cpu_m, memory_bytes in rows:
        sums[node][f"cpu_{by}_m"] += int(cpu_m)
        sums[node][f"memory_{by}_bytes"] += int(memory_bytes)
