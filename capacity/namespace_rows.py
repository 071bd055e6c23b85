"""The Namespaces of a cluster, from the mirror."""

from collections.abc import Collection, Mapping
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from fleet.models import Bookmark, ClusterNamespace
from fleet.models.bookmark import STALE_AFTER
from kube.resources import NAMESPACES


def labels_of_namespaces(cluster_id: int) -> Mapping[str, Mapping[str, str]] | None:
    """Returns the labels by name. None: namespaces were never read."""
    if not Bookmark.objects.knows_all(cluster_id, NAMESPACES.name):
        return None
    return dict(ClusterNamespace.objects.filter(cluster=cluster_id).values_list("name", "labels"))


def fresh_namespaces(cluster_id: int, *, now: datetime) -> QuerySet[ClusterNamespace]:
    """Returns the Namespaces; none while they are not read, or were not seen for long."""
    seen = Bookmark.objects.known(NAMESPACES.name).filter(last_seen_at__gte=now - STALE_AFTER)
    return ClusterNamespace.objects.filter(Exists(seen.filter(cluster=OuterRef("cluster"))), cluster=cluster_id)


def deleted_namespaces(cluster_id: int, names: Collection[str], *, now: datetime) -> Mapping[str, str]:
    """Returns the reason why each deletion is unfinished, by namespace; blank: unknown. One query."""
    rows = fresh_namespaces(cluster_id, now=now).filter(name__in=names, deleted_at__isnull=False)
    return dict(rows.values_list("name", "held_by"))
