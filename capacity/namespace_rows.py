"""The Namespaces of a cluster, from the mirror."""

from collections.abc import Collection, Mapping

from fleet.models import Bookmark, ClusterNamespace
from kube.resources import NAMESPACES


def labels_of_namespaces(cluster_id: int) -> Mapping[str, Mapping[str, str]] | None:
    """Returns the labels by name. None: namespaces were never read."""
    if not Bookmark.objects.knows_all(cluster_id, NAMESPACES.name):
        return None
    return dict(ClusterNamespace.objects.filter(cluster=cluster_id).values_list("name", "labels"))


def deleted_namespaces(cluster_id: int, names: Collection[str]) -> Mapping[str, str]:
    """Returns what the deletion of these namespaces waits for, by name; blank where nothing says. One query."""
    rows = ClusterNamespace.objects.filter(cluster=cluster_id, name__in=names, deleted_at__isnull=False)
    return dict(rows.values_list("name", "held_by"))
