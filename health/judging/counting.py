"""How many findings each node has, kept on it, and what is told to browsers when that or a finding changed."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Count

from fleet.allocation.kept import kept
from fleet.cells.pieces import told
from fleet.messages import announce
from fleet.models import Cluster, Node, Observer
from health.lifecycle import FindingState
from health.models import Finding

AT_ONCE = 1000  # nodes a statement
NOTE = "note"  # worth knowing, and nothing is wrong


def count_on_nodes(cluster: Cluster) -> list[int]:
    """Keep on each node how many findings it has, confirmed or not. Which changed; two queries, and one for each number
    that any has now.
    """
    mattering = Finding.objects.told().of_nodes_own().filter(cluster=cluster).exclude(severity=NOTE)
    unresolved = mattering.exclude(state__in=(FindingState.MUTED, FindingState.RESOLVED))
    found = dict(unresolved.order_by().values_list("node").annotate(number=Count("pk")))
    was = dict(Node.objects.filter(cluster=cluster, unresolved__gt=0).order_by().values_list("pk", "unresolved"))
    changed = [pk for pk in {*found, *was} if found.get(pk, 0) != was.get(pk, 0)]
    with kept(cluster.pk, changed):
        for number in {found.get(pk, 0) for pk in changed}:
            having = [pk for pk in changed if found.get(pk, 0) == number]
            for first in range(0, len(having), AT_ONCE):
                Node.objects.filter(pk__in=having[first : first + AT_ONCE]).update(unresolved=number)
    return changed


def announce_findings(cluster_id: int, *, nodes: Collection[int], at: datetime) -> None:
    """Once it is committed."""
    newest = Observer.batch_of(cluster_id)  # before the nodes: what is told of them is as new, or newer
    changed = told(Node.objects.filter(pk__in=nodes))
    announce.cluster_changed(cluster_id, seq=newest, nodes=changed, kinds=("findings",), at=at)
