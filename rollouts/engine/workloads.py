"""The pods that matter to a plan: what runs on its nodes, and how its owners fare in the whole cluster."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import starmap
from typing import Any

from django.db.models import Q, QuerySet

from fleet.models import ClusterEvent, Pod
from fleet.models.pod import PodQuerySet
from fleet.pod_reasons import PodReason, reasons_of
from gpu.operands import COMPUTE_DOMAIN, DRIVER, TITLES, VALIDATOR
from rollouts.gates.base import NOTHING, OperandEvidence, PodEvidence, ValidatorEvidence
from rollouts.lifecycle import BEGUN, TargetState
from rollouts.models import Plan, Rollout, Target

REFUSED = "FailedCreate"  # the reason of the Event by which a controller says that its pod was refused
MOST_OF_A_REFUSAL = 300  # characters; it names quotas and what of each is used
EXPLAINED_AT_MOST = 20  # pods: a gate names one
MOST_OF_A_LINE = 200  # characters, of what a program said
CRASHING = 2  # restarts; a pod that has had more and is not Ready was sick before anybody changed its node


@dataclass(frozen=True)
class DriverPod:
    owner_uid: str
    revision_hash: str


def driver_pods(plan: Rollout) -> dict[str, DriverPod]:
    """Node name → its pod of what the plan changes, whichever object it is of. One query.

    Where a pod deleted is what lets a node go, one that was told to go is none.
    """
    pods = Pod.objects.filter(cluster=plan.cluster_id, operand=plan.its_component.operand).not_done().order_by("pk")
    if plan.its_component.hold is None:
        pods = pods.filter(deleted_at__isnull=True)
    return {name: DriverPod(*pod) for name, *pod in pods.values_list("node_name", "owner_uid", "revision_hash")}


def pods_on(plan: Rollout, names: Collection[str]) -> dict[str, list[Pod]]:
    """Node name → the pods on it that matter. One query, none for no nodes."""
    if not names:
        return {}
    matters = Q(is_tenant=True) | ~Q(operand="")
    found: dict[str, list[Pod]] = defaultdict(list)
    pods = Pod.objects.filter(matters, cluster=plan.cluster_id, node_name__in=names).not_done()
    for pod in pods.order_by("namespace", "name"):
        found[pod.node_name].append(pod)
    return found


def owner_of(pod: Pod) -> str:
    return _owner(pod.owner_kind, pod.namespace, pod.owner_name, pod.name)


def _owner(kind: str, namespace: str, owner: str, pod: str) -> str:
    return f"{kind or 'Pod'} {namespace}/{owner or pod}"


def _owners(pods: PodQuerySet) -> Iterator[str]:
    """Of each pod. A cluster has tens of thousands: no more of them is read than says it. One query."""
    return starmap(_owner, pods.order_by().values_list("owner_kind", "namespace", "owner_name", "name"))


def _tenants(plan: Rollout) -> PodQuerySet:
    return Pod.objects.filter(cluster=plan.cluster_id).tenants().not_done()


def ready_by_owner(plan: Rollout) -> Counter[str]:
    return Counter(_owners(_tenants(plan).filter(is_ready=True)))


def crashing_owners(plan: Rollout) -> list[str]:
    """Owners with a pod that crashes on a node this plan has not touched: they were sick before it came."""
    touched: QuerySet[Any]
    if isinstance(plan, Plan):
        touched = Target.objects.filter(stage__plan=plan).exclude(state=TargetState.HELD).values("node_name")
    else:
        touched = plan.nodes.filter(state__in=BEGUN).values("node_name")
    crashing = _tenants(plan).filter(is_ready=False, restarts__gt=CRASHING).exclude(node_name__in=touched)
    return sorted(set(_owners(crashing)))


def ready_and_waiting(plan: Rollout) -> tuple[Counter[str], Counter[str]]:
    """Owner → how many of its pods are Ready, and how many wait for a node. One query."""
    rows = _tenants(plan).filter(Q(is_ready=True) | Q(node_name="")).order_by()
    pods = list(rows.values_list("is_ready", "node_name", "owner_kind", "namespace", "owner_name", "name"))
    ready = Counter(_owner(*named) for is_ready, _, *named in pods if is_ready)
    return ready, Counter(_owner(*named) for _, node_name, *named in pods if not node_name)


def refused(plan: Rollout, since: Mapping[str, datetime]) -> dict[str, str]:
    """Owner → what its controller was told when it made a pod last, of those that were told no. Two queries at most.

    Such a pod never was, so that none is Pending: of a quota, a LimitRange or a webhook that says no the controller's
    own Events tell, and nothing else (hazard Z31). An Event outlives what it tells: where the owner has a newer pod,
    the API server has taken one since. `since`: by owner, by the cluster's clock; what is older is not quoted.
    """
    first = min(since.values())
    told = ClusterEvent.objects.filter(cluster=plan.cluster_id, reason=REFUSED, is_warning=True, last_at__gte=first)
    columns = ("about_kind", "about_namespace", "about_name", "last_at", "message")
    last: dict[str, tuple[datetime, str]] = {}
    for kind, namespace, name, at, message in told.order_by("last_at", "pk").values_list(*columns):
        if at is not None:  # as none of those is
            last[f"{kind} {namespace}/{name}"] = (at, message)
    found = {owner: last[owner] for owner, at in since.items() if owner in last and last[owner][0] >= at}
    newest = _newest_pods(plan, found) if found else {}
    return {
        owner: message[:MOST_OF_A_REFUSAL]
        for owner, (at, message) in found.items()
        if owner not in newest or at >= newest[owner]
    }


def _newest_pods(plan: Rollout, owners: Collection[str]) -> dict[str, datetime]:
    """Owner → when the API server took the newest pod that it still shows of it; those on their way out, too."""
    by_name = {owner.partition("/")[2] for owner in owners}
    pods = Pod.objects.filter(cluster=plan.cluster_id).filter(Q(owner_name__in=by_name) | Q(name__in=by_name))
    found: dict[str, datetime] = {}
    for *named, at in pods.order_by("created_at").values_list(
        "owner_kind", "namespace", "owner_name", "name", "created_at"
    ):
        found[_owner(*named)] = at
    return {owner: found[owner] for owner in owners if owner in found}


def operands_of(pods: Sequence[Pod]) -> tuple[OperandEvidence, ...]:
    """Without daemons of ComputeDomains: those come and go with their workload."""
    return tuple(
        OperandEvidence(TITLES.get(pod.operand, pod.operand), pod.is_ready, pod.waiting_reason)
        for pod in pods
        if pod.operand and pod.operand != COMPUTE_DOMAIN and pod.deleted_at is None
    )


def validator_of(pods: Sequence[Pod], ahead: timedelta = timedelta(0)) -> ValidatorEvidence | None:
    """Its newest pod that is not on its way out. None: there is none."""
    pod = _newest(pods, VALIDATOR)
    if pod is None:
        return None
    return ValidatorEvidence(
        uid=pod.uid,
        is_ready=pod.is_ready,
        started_at=(pod.started_at or pod.created_at) - ahead,
        restarts=pod.restarts,
        step=pod.stuck_container,
        reason=pod.waiting_reason,
        last_words=pod.last_words,
        status=pod.status,
    )


def driver_started_at(pods: Sequence[Pod], ahead: timedelta) -> datetime | None:
    pod = _newest(pods, DRIVER)
    return None if pod is None else (pod.started_at or pod.created_at) - ahead


def _newest(pods: Sequence[Pod], operand: str) -> Pod | None:
    there = [pod for pod in pods if pod.operand == operand and pod.deleted_at is None]
    return max(there, key=lambda pod: pod.started_at or pod.created_at, default=None)


def why_unready(pods: Mapping[str, Sequence[Pod]], *, now: datetime) -> dict[str, str]:
    """Why tenants' pods do not run, by UID: of a few, as a gate names one. No query where all do."""
    unready = (pod for mine in pods.values() for pod in mine if not (pod.operand or pod.is_ready or pod.deleted_at))
    reasons = reasons_of(sorted(unready, key=lambda pod: -pod.restarts)[:EXPLAINED_AT_MOST], now=now)
    return {uid: _spell(reason) for uid, reason in reasons.items() if reason.key != "stuck"}


def _spell(reason: PodReason) -> str:
    """With the line that tells it, where the sentence does not have that."""
    has_line = reason.said and reason.said not in reason.sentence
    return f"{reason.sentence} “{reason.said[:MOST_OF_A_LINE]}”" if has_line else reason.sentence


def workloads_of(
    pods: Sequence[Pod], ahead: timedelta = timedelta(0), why: Mapping[str, str] = NOTHING
) -> tuple[PodEvidence, ...]:
    """`ahead`: of ours is the clock that says when pods began; gates compare with ours. `why`: of `why_unready`."""
    return tuple(
        PodEvidence(
            name=str(pod),
            owner=owner_of(pod),
            is_ready=pod.is_ready,
            started_at=(pod.started_at or pod.created_at) - ahead,
            restarts=pod.restarts,
            reason=pod.waiting_reason,
            status=pod.status,
            why=why.get(pod.uid, ""),
        )
        for pod in pods
        if not pod.operand and pod.deleted_at is None
    )
