"""The owners of workloads: the value of one label of their pods, remembered for as long as their hours.

`QUARTERDECK_OWNER_LABEL` names the label. Pods without a controller have no owner, since their names say nothing.
"""

from collections.abc import Collection
from datetime import datetime

from django.conf import settings
from django.db.models.fields.json import KeyTextTransform

from capacity.models import WorkloadOwner
from fleet.models import Pod
from fleet.retention import delete
from health.sources.usage import LONGEST

LONGEST_VALUE = 63  # of a label (kubernetes.io/docs/concepts/overview/working-with-objects/labels)
WORKLOADS_AT_MOST = 20_000  # in one recording


def record(cluster_id: int, hour: datetime) -> None:
    """Writes the owners of the workloads that have GPU pods now. Two queries; none without a label."""
    label = settings.OWNER_LABEL
    if not label:
        return
    pods = Pod.objects.tenants().filter(cluster=cluster_id, labels__has_key=label).exclude(owner_name="").order_by()
    values = pods.annotate(value=KeyTextTransform(label, "labels"))
    found = {
        (namespace, f"{kind}/{name}"[:LONGEST]): value[:LONGEST_VALUE]
        for namespace, kind, name, value in values.values_list(
            "namespace", "owner_kind", "owner_name", "value"
        ).distinct()[:WORKLOADS_AT_MOST]
        if value
    }
    rows = [
        WorkloadOwner(cluster_id=cluster_id, namespace=namespace, workload=workload, owner=owner, seen_at=hour)
        for (namespace, workload), owner in sorted(found.items())
    ]
    WorkloadOwner.objects.bulk_create(
        rows, update_conflicts=True, update_fields=["owner", "seen_at"], batch_size=1000,
        unique_fields=["cluster", "namespace", "workload"],
    )  # fmt: skip


def owners_of(clusters: Collection[int]) -> dict[tuple[int, str, str], str]:
    """Returns the owners by cluster, namespace and workload. One query."""
    rows = WorkloadOwner.objects.filter(cluster__in=clusters)
    found = rows.values_list("cluster", "namespace", "workload", "owner")
    return {(cluster, namespace, workload): owner for cluster, namespace, workload, owner in found}


def tidy(*, before: datetime, **_: datetime) -> int:
    """Deletes the owners of workloads whose hours are deleted, and returns their number."""
    return delete(WorkloadOwner.objects.filter(seen_at__lt=before))
