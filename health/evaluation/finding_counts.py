"""The number of findings of each node, stored with the node, and the messages to browsers about changes."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count, Q

from edges.slices import slices
from fleet.allocation.counters import count_written_nodes
from fleet.map_cells.chunks import announce_nodes
from fleet.models import Cluster, Node
from health.evaluation.finding_openings import lock_findings
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.base import Severity

NONE = (0, 0)
CountsByNode = dict[int, tuple[int, int]]


def count_on_nodes(cluster: Cluster, nodes: Collection[int | None] | None = None) -> list[int]:
    """Stores on each node the number of its findings, open or pending, and of critical ones. Returns the changed nodes.

    It works in batches: two queries, and in each batch two again and one for each pair of numbers. `nodes` holds the
    keys of those that may have changed; None means all.
    """
    asked = _differing(cluster, Q()) if nodes is None else [pk for pk in nodes if pk is not None]
    changed: list[int] = []
    for some in slices(sorted(asked)):
        with lock_findings(cluster):
            changed += _count(cluster, some.whole())
    return changed


def _count(cluster: Cluster, nodes: Collection[int]) -> list[int]:
    found = _findings_by_node(cluster, Q(node__in=nodes))
    changed = _differing(cluster, Q(pk__in=nodes), found)
    with count_written_nodes(cluster.pk, changed):
        for number, critical in {found.get(pk, NONE) for pk in changed}:
            having = [pk for pk in changed if found.get(pk, NONE) == (number, critical)]
            Node.objects.filter(pk__in=having).update(unresolved=number, critical=critical)
    return changed


def _differing(cluster: Cluster, nodes: Q, found: CountsByNode | None = None) -> list[int]:
    """Returns the nodes whose stored numbers differ from their findings."""
    found = _findings_by_node(cluster, Q()) if found is None else found
    having_any = Node.objects.filter(nodes, cluster=cluster, unresolved__gt=0).order_by()
    was = {pk: (number, critical) for pk, number, critical in having_any.values_list("pk", "unresolved", "critical")}
    return [pk for pk in {*found, *was} if found.get(pk, NONE) != was.get(pk, NONE)]


def _findings_by_node(cluster: Cluster, which: Q) -> CountsByNode:
    mattering = Finding.objects.notified().of_nodes_own().filter(which, cluster=cluster).exclude(severity=Severity.NOTE)
    unresolved = mattering.exclude(state__in=(FindingState.MUTED, FindingState.RESOLVED))
    critical = Count("pk", filter=Q(severity=Severity.CRITICAL))
    rows = unresolved.order_by().values_list("node").annotate(number=Count("pk"), critical=critical)
    return {pk: (number, critical) for pk, number, critical in rows}


def announce_findings(cluster_id: int, *, nodes: Collection[int], at: datetime) -> None:
    """Notifies browsers after the commit."""
    announce_nodes(cluster_id, Node.objects.filter(pk__in=nodes), kind="findings", at=at)
