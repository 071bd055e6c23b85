"""How many findings each node has, kept on it, and what is told to browsers when that or a finding changed."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count, Q

from fleet.allocation.kept import kept
from fleet.cells.pieces import told
from fleet.messages import announce
from fleet.models import Cluster, Node, Observer
from health.lifecycle import FindingState
from health.models import Finding
from health.rules.base import Severity

AT_ONCE = 1000  # nodes a statement
NONE = (0, 0)


def count_on_nodes(cluster: Cluster) -> list[int]:
    """Keep on each node how many findings it has, confirmed or not, and how many of them are critical. Which changed;
    two queries, and one for each pair of numbers that any has now.
    """
    mattering = Finding.objects.told().of_nodes_own().filter(cluster=cluster).exclude(severity=Severity.NOTE)
    unresolved = mattering.exclude(state__in=(FindingState.MUTED, FindingState.RESOLVED))
    critical = Count("pk", filter=Q(severity=Severity.CRITICAL))
    rows = unresolved.order_by().values_list("node").annotate(number=Count("pk"), critical=critical)
    found = {pk: (number, critical) for pk, number, critical in rows}
    having_any = Node.objects.filter(cluster=cluster, unresolved__gt=0).order_by()
    was = {pk: (number, critical) for pk, number, critical in having_any.values_list("pk", "unresolved", "critical")}
    changed = [pk for pk in {*found, *was} if found.get(pk, NONE) != was.get(pk, NONE)]
    with kept(cluster.pk, changed):
        for number, critical in {found.get(pk, NONE) for pk in changed}:
            having = [pk for pk in changed if found.get(pk, NONE) == (number, critical)]
            for first in range(0, len(having), AT_ONCE):
                some = Node.objects.filter(pk__in=having[first : first + AT_ONCE])
                some.update(unresolved=number, critical=critical)
    return changed


def announce_findings(cluster_id: int, *, nodes: Collection[int], at: datetime) -> None:
    """Once it is committed."""
    newest = Observer.batch_of(cluster_id)  # before the nodes: what is told of them is as new, or newer
    changed = told(Node.objects.filter(pk__in=nodes))
    announce.cluster_changed(cluster_id, seq=newest, nodes=changed, kinds=("findings",), at=at)
