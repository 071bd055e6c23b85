"""GPU pods of tenants: their states and filters, for the page, its file and REST."""

from datetime import datetime
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Sum, Value

from fleet.models import Cluster, Node, Pod, Pool
from fleet.models.node import members_of
from fleet.models.pod import PodQuerySet
from fleet.owner_chains import PodOwner, chains_above
from fleet.states.pod import CODES, PodState

NO_POOL = "none"
BY_CLAIM = "claim"  # replaces the resource name if the pod requests GPUs by ResourceClaims
STATES = {state.value: state for state in PodState}


def visible_pods(user, *, now: datetime) -> PodQuerySet:
    """Returns the visible pods with `shown_state`. One query for nodes with silent kubelets."""
    silent = Node.objects.filter(is_ready=None).order_by().values_list("pk", flat=True)
    return Pod.objects.visible_to(user).with_state(now=now, silent_nodes=list(silent))


def sums_by_state(pods: PodQuerySet, *columns: str) -> QuerySet[Any, Any]:
    """Returns rows of these columns, `shown_state`, number, GPUs and oldest creation. Add up rows of one key.

    An index has pods by owner and by state in the order of `state_code`. Those that are shown otherwise are few: a
    negative row takes each from there. One query, so that all rows are of one moment.
    """
    every: Any = pods.order_by()
    otherwise = every.filter(is_shown_otherwise=True, cluster__in=Cluster.objects.order_by().values("pk"))
    sums = every.values_list(*columns, "state_code").annotate(n=Count("*"), held=Sum("gpus"), oldest=Min("created_at"))
    moved = (
        otherwise.annotate(n=Value(sign), held=Value(sign) * F("gpus")).values_list(
            *columns, code, "n", "held", "created_at"
        )
        for code, sign in (("state_code", -1), ("shown_state", 1))
    )
    return sums.union(*moved, all=True)


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
    """Returns kind and name of the topmost known owner by pod key: a Deployment, not its ReplicaSet."""
    return {key: chain[-1] for key, chain in owner_chains(pods).items()}


def owner_chains(pods: list[Pod]) -> dict[int, list[PodOwner]]:
    """Returns the owners by pod key, its controller first. Without a controller it is an owner without a name."""
    above = chains_above({pod.owner_uid for pod in pods if pod.owner_uid}, clusters={pod.cluster_id for pod in pods})
    return {
        pod.pk: [PodOwner(pod.owner_kind, pod.owner_name), *above.get((pod.cluster_id, pod.owner_uid), ())]
        for pod in pods
    }
