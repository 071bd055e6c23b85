"""The owners of workloads: the value of one label of their pods or namespace, remembered for as long as their hours.

`QUARTERDECK_OWNER_LABEL` names the label. Pods without a controller have no owner, since their names say nothing.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from django.conf import settings
from django.db.models.fields.json import KeyTextTransform

from capacity.models import WorkloadOwner
from fleet.models import Bookmark, ClusterNamespace, Pod
from fleet.owner_chains import top_owners_of
from fleet.retention import delete
from health.sources.usage import LONGEST
from kube.resources import NAMESPACES

LONGEST_VALUE = 63  # of a label (kubernetes.io/docs/concepts/overview/working-with-objects/labels)
WORKLOADS_AT_MOST = 20_000  # in one recording
OWNER = ("namespace", "owner_kind", "owner_name", "owner_uid")


def record(cluster_id: int, hour: datetime) -> None:
    """Writes the owners of the workloads that have GPU pods now. None without a label; else five queries at most, and
    those of the owners twice.

    A label of the pods wins over the same label of their namespace.
    """
    label = settings.OWNER_LABEL
    if not label:
        return
    pods = Pod.objects.tenants().filter(cluster=cluster_id, labels__has_key=label).exclude(owner_name="").order_by()
    values = pods.annotate(value=KeyTextTransform(label, "labels")).values_list(*OWNER, "value").distinct()
    labelled = list(values[:WORKLOADS_AT_MOST])
    workloads = _workloads(cluster_id, [row[:-1] for row in labelled])
    own = {workload: row[-1][:LONGEST_VALUE] for workload, row in zip(workloads, labelled, strict=True) if row[-1]}
    found = _from_namespaces(cluster_id, label) | own
    rows = [
        WorkloadOwner(cluster_id=cluster_id, namespace=namespace, workload=workload, owner=owner, seen_at=hour)
        for (namespace, workload), owner in sorted(found.items())
    ]
    WorkloadOwner.objects.bulk_create(
        rows, update_conflicts=True, update_fields=["owner", "seen_at"], batch_size=1000,
        unique_fields=["cluster", "namespace", "workload"],
    )  # fmt: skip


def _from_namespaces(cluster_id: int, label: str) -> dict[tuple[str, str], str]:
    """Returns the owners that the label of their namespaces names."""
    if not Bookmark.objects.knows_all(cluster_id, NAMESPACES.name):
        return {}
    labelled = ClusterNamespace.objects.filter(cluster=cluster_id, labels__has_key=label)
    by_name = {name: labels[label] for name, labels in labelled.values_list("name", "labels") if labels[label]}
    if not by_name:
        return {}
    pods = Pod.objects.tenants().filter(cluster=cluster_id, namespace__in=by_name).exclude(owner_name="").order_by()
    workloads = _workloads(cluster_id, list(pods.values_list(*OWNER).distinct()[:WORKLOADS_AT_MOST]))
    return {workload: by_name[workload[0]][:LONGEST_VALUE] for workload in workloads}


def _workloads(cluster_id: int, owners: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Returns namespace and topmost owner of each direct owner, as hours are recorded."""
    tops = top_owners_of(cluster_id, (uid for *_, uid in owners))
    return [(namespace, tops.get(uid, f"{kind}/{name}")[:LONGEST]) for namespace, kind, name, uid in owners]


def owners_of(clusters: Collection[int]) -> dict[tuple[int, str, str], str]:
    """Returns the owners by cluster, namespace and workload. One query."""
    rows = WorkloadOwner.objects.filter(cluster__in=clusters)
    found = rows.values_list("cluster", "namespace", "workload", "owner")
    return {(cluster, namespace, workload): owner for cluster, namespace, workload, owner in found}


def tidy(*, before: datetime, **_: datetime) -> int:
    """Deletes the owners of workloads whose hours are deleted, and returns their number."""
    return delete(WorkloadOwner.objects.filter(seen_at__lt=before))
