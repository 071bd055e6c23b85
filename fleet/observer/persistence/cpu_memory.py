"""Pods per node with their requests of CPU and memory: sums over bound pods, with full or reduced rows."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When

from fleet.allocation.counters import count_written_nodes
from fleet.allocation.cpu_memory import SET_BY_PODS
from fleet.models import Node, OtherPod, Pod
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.upsert import Written
from fleet.observer.persistence.upsert_statement import update
from fleet.states.pod import ENDED

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
        if _is_counted(old) != _is_counted(new) or any(old[each] != new[each] for each in COUNTED if each in new):
            rows += (old, new)
    return {row["node_name"] for row in rows if _is_counted(row)}


def _is_counted(row: Columns) -> bool:
    """Tells whether the pod is on a node and has not finished. A reduced row of a finished pod does not exist."""
    return bool(row["node_name"]) and row.get("phase") not in ENDED


def bound_to(cluster_id: int, names: Collection[str]) -> set[str]:
    others = OtherPod.objects.filter(cluster_id=cluster_id, node_name__in=names)
    return set(others.order_by().values_list("node_name", flat=True))


def count(cluster_id: int, names: Collection[str]) -> None:
    """Recounts these nodes in the transaction that wrote the pods."""
    if names:
        write(cluster_id, differing(cluster_id, names))


def write(cluster_id: int, wrong: DifferingRequests) -> None:
    with count_written_nodes(cluster_id, wrong):
        update(Node, SET_BY_PODS, ((*amounts, node_id) for node_id, amounts in wrong.items()))


def differing(cluster_id: int, names: Collection[str] | None) -> DifferingRequests:
    """Returns the right sums of nodes with outdated ones. Three queries. `names` limits the nodes; None: all."""
    nodes: QuerySet = Node.objects.filter(cluster_id=cluster_id)
    kept: QuerySet = Pod.objects.filter(cluster_id=cluster_id).exclude(node_name="").annotate(by=BY)
    others: QuerySet = OtherPod.objects.filter(cluster_id=cluster_id).annotate(by=Value("others"))
    if names is not None:
        nodes, kept = nodes.filter(name__in=names), kept.filter(node_name__in=names)
        others = others.filter(node_name__in=names)
    sums: RequestsByNode = defaultdict(lambda: dict.fromkeys(SET_BY_PODS, 0))
    _add(sums, kept.order_by(), Count("pk", filter=~Q(phase__in=ENDED)))
    _add(sums, others.order_by(), Count("pk"))
    wrong: DifferingRequests = {}
    for node_id, name, *was in nodes.order_by().values_list("id", "name", *SET_BY_PODS):
        wanted = tuple(sums[name][column] for column in SET_BY_PODS)
        if wanted != tuple(was):
            wrong[node_id] = wanted
    return wrong


def _add(sums: RequestsByNode, pods: QuerySet, number: Count) -> None:
    rows = pods.values_list("node_name", "by").annotate(Sum("cpu_m"), Sum("memory_bytes"), number=number)
    for node, by, cpu_m, memory_bytes, bound in rows:
        sums[node]["pods_bound"] += bound
        sums[node][f"cpu_{by}_m"] += int(cpu_m)
        sums[node][f"memory_{by}_bytes"] += int(memory_bytes)
