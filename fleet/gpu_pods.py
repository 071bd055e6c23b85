"""GPU pods of tenants: their states and filters, for the page, its file and REST."""

from datetime import datetime

from django.db.models import Q, QuerySet

from fleet.models import Node, Pod, Pool, Workload
from fleet.models.node import members_of
from fleet.models.pod import PodQuerySet
from fleet.states.pod import CODES, PodState

NO_POOL = "none"
BY_CLAIM = "claim"  # in place of a resource name: the pod asks for GPUs by ResourceClaims
STATES = {state.value: state for state in PodState}


def visible_pods(user, *, now: datetime) -> PodQuerySet:
    """Returns the visible pods with `shown_state`. One query for nodes with silent kubelets."""
    silent = Node.objects.filter(is_ready=None).values_list("pk", flat=True)
    return Pod.objects.visible_to(user).with_state(now=now, silent_nodes=list(silent))


def in_state(name: str) -> Q:
    """Filters by a state's name. An unknown name matches nothing."""
    state = STATES.get(name)
    return Q(shown_state=CODES[state]) if state else Q(pk__in=[])


def asking_for(resource: str) -> Q:
    """Filters by a requested resource, or by `claim`."""
    return ~Q(claims=[]) if resource == BY_CLAIM else Q(resources__has_key=resource)


def on_nodes_of(pool: str, visible: QuerySet[Pool]) -> Q:
    """Filters by the pool of the node: `name`, `cluster/name`, or `none` for nodes without a pool."""
    if pool == NO_POOL:
        return Q(node__isnull=False) & ~Q(node__in=Node.pools.through.objects.values("node_id"))
    cluster, _, name = pool.rpartition("/")
    named = visible.filter(name=name, **{"cluster__name": cluster} if cluster else {})
    return Q(node__in=members_of(named.values("pk")))


def top_owners(pods: list[Pod]) -> dict[int, tuple[str, str]]:
    """Returns kind and name of the topmost watched owner by pod key: a Deployment, not its ReplicaSet. One query."""
    uids = {pod.owner_uid for pod in pods if pod.owner_uid}
    above = {
        (row.cluster_id, row.uid): (row.owner_kind, row.owner_name)
        for row in Workload.objects.filter(uid__in=uids).only("cluster_id", "uid", "owner_kind", "owner_name")
        if row.owner_kind
    }
    own = {pod.pk: (pod.owner_kind, pod.owner_name) for pod in pods}
    return {pod.pk: above.get((pod.cluster_id, pod.owner_uid), own[pod.pk]) for pod in pods}
