"""Pods of the same Deployment that a rolling update keeps until the waiting pod is ready."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models.fields.json import KeyTextTransform

from capacity.wait_reasons.rolling_update import OlderPods
from fleet.models import Pod

TEMPLATE_HASH = "pod-template-hash"  # kubernetes.io/docs/concepts/workloads/controllers/deployment
OWNER_KIND = "ReplicaSet"
PODS_AT_MOST = 4  # of a Deployment of three pods, with one more in its update; larger ones end older pods before


class RowOfPod(NamedTuple):
    namespace: str
    node: int
    owner_name: str
    is_ready: bool
    resources: Mapping[str, int]
    created_at: datetime
    template_hash: str


def deployment_of(pod: Pod) -> str:
    """Returns the name of the Deployment: that of the ReplicaSet without the hash of its template. Blank: none."""
    return _deployment(pod.owner_name, pod.labels.get(TEMPLATE_HASH, "")) if pod.owner_kind == OWNER_KIND else ""


def _deployment(replica_set: str, template_hash: str) -> str:
    return replica_set.removesuffix(f"-{template_hash}") if replica_set.endswith(f"-{template_hash}") else ""


def older_pods(cluster_id: int, pods: Iterable[Pod]) -> Mapping[str, OlderPods]:
    """Returns the older pods by UID of the waiting pod, where there are any. One query, none without a Deployment."""
    waiting = [(pod, name) for pod in pods if (name := deployment_of(pod))]
    if not waiting:
        return {}
    rows = (
        Pod.objects.tenants()
        .not_done()
        .filter(cluster=cluster_id, owner_kind=OWNER_KIND, node__isnull=False, deleted_at=None)
        .filter(namespace__in={pod.namespace for pod, _ in waiting}, labels__has_key=TEMPLATE_HASH)
        .order_by()
        .annotate(template_hash=KeyTextTransform(TEMPLATE_HASH, "labels"))
    )
    running: dict[tuple[str, str], list[RowOfPod]] = defaultdict(list)
    for row in map(RowOfPod._make, rows.values_list(*RowOfPod._fields)):
        running[row.namespace, _deployment(row.owner_name, row.template_hash)].append(row)
    found = {pod.uid: _older(pod, name, running.get((pod.namespace, name), ())) for pod, name in waiting}
    return {uid: older for uid, older in found.items() if older is not None}


def _older(pod: Pod, name: str, running: Sequence[RowOfPod]) -> OlderPods | None:
    """Returns the pods of other templates that have at least the GPUs that this one requests.

    None where the update may go on without them: its Deployment is larger, or a new pod will be ready soon.
    """
    own = [row for row in running if row.owner_name == pod.owner_name]
    others = [
        row
        for row in running
        if row.owner_name != pod.owner_name
        and row.created_at < pod.created_at
        and all(row.resources.get(resource, 0) >= amount for resource, amount in pod.resources.items())
    ]
    if not others or len(running) + 1 > PODS_AT_MOST or not all(row.is_ready for row in own):
        return None
    return OlderPods(name, len(others), frozenset(row.node for row in others))
