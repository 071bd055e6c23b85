"""The pods that matter to a plan: those on its nodes, and the state of their owners in the whole cluster."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import starmap
from types import MappingProxyType
from typing import Any

from django.db.models import Q, QuerySet

from fleet.models import ClusterEvent, Pod, PodPlacement
from fleet.models.pod import COMPLETED, PodQuerySet
from fleet.pod_reasons import PodReason, reasons_of
from gpu.operands import COMPUTE_DOMAIN, DRIVER, TITLES, VALIDATOR
from rollouts.gates.base import OperandEvidence, PodEvidence, ValidatorEvidence
from rollouts.lifecycle import BEGUN, TargetState
from rollouts.models import Plan, Rollout, Target

REFUSED = "FailedCreate"  # reason of the Event with which a controller reports a refused pod
MOST_OF_A_REFUSAL = 300  # characters; it names quotas and their use
EXPLAINED_AT_MOST = 20  # pods: a gate names one
MOST_OF_A_LINE = 200  # characters of a program's output
MOST_COMPLETED = 5_000  # newest ended pods, of all owners that have fewer pods than before
CRASHING = 2  # restarts; a pod that has had more and is not Ready was sick before anybody changed its node

NO_CAUSES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class DriverPod:
    owner_uid: str
    revision_hash: str


def driver_pods(plan: Rollout) -> dict[str, DriverPod]:
    """Returns the driver pod of each node by node name, of any driver object. One query.

    Where deleting the pod releases a node, a terminating pod does not count.
    """
    pods = Pod.objects.filter(cluster=plan.cluster_id, operand=plan.its_component.operand).not_done().order_by("pk")
    if plan.its_component.hold is None:
        pods = pods.filter(deleted_at__isnull=True)
    return {name: DriverPod(*pod) for name, *pod in pods.values_list("node_name", "owner_uid", "revision_hash")}


def pods_on(plan: Rollout, names: Collection[str]) -> dict[str, list[Pod]]:
    """Returns the relevant pods of each node by node name. One query; none without nodes."""
    if not names:
        return {}
    matters = Q(is_tenant=True) | ~Q(operand="")
    found: dict[str, list[Pod]] = defaultdict(list)
    pods = Pod.objects.filter(matters, cluster=plan.cluster_id, node_name__in=names).not_done()
    for pod in pods.order_by("namespace", "name"):
        found[pod.node_name].append(pod)
    return found


def owner_of(pod: Pod | PodPlacement) -> str:
    return _owner(pod.owner_kind, pod.namespace, pod.owner_name, pod.name)


def _owner(kind: str, namespace: str, owner: str, pod: str) -> str:
    return f"{kind or 'Pod'} {namespace}/{owner or pod}"


def _owners(pods: PodQuerySet) -> Iterator[str]:
    """Yields the owner of each pod, reading only the needed columns of tens of thousands of pods. One query."""
    return starmap(_owner, pods.order_by().values_list("owner_kind", "namespace", "owner_name", "name"))


def _tenants(plan: Rollout) -> PodQuerySet:
    return Pod.objects.filter(cluster=plan.cluster_id).tenants().not_done()


def ready_by_owner(plan: Rollout) -> Counter[str]:
    return Counter(_owners(_tenants(plan).filter(is_ready=True)))


def crashing_owners(plan: Rollout) -> list[str]:
    """Returns owners with a crashing pod on a node that this plan has not changed."""
    touched: QuerySet[Any]
    if isinstance(plan, Plan):
        touched = Target.objects.filter(stage__plan=plan).exclude(state=TargetState.HELD).values("node_name")
    else:
        touched = plan.nodes.filter(state__in=BEGUN).values("node_name")
    crashing = _tenants(plan).filter(is_ready=False, restarts__gt=CRASHING).exclude(node_name__in=touched)
    return sorted(set(_owners(crashing)))


def ready_and_waiting(plan: Rollout) -> tuple[Counter[str], Counter[str]]:
    """Returns per owner the number of Ready pods and of pods that wait for a node. One query."""
    rows = _tenants(plan).filter(Q(is_ready=True) | Q(node_name="")).order_by()
    pods = list(rows.values_list("is_ready", "node_name", "owner_kind", "namespace", "owner_name", "name"))
    ready = Counter(_owner(*named) for is_ready, _, *named in pods if is_ready)
    return ready, Counter(_owner(*named) for _, node_name, *named in pods if not node_name)


def completed_by_owner(
    plan: Rollout, counted_at: Mapping[str, datetime], released: Mapping[str, datetime]
) -> Counter[str]:
    """Returns per owner the number of pods that ran to their end in place of the counted ones. One query.

    `counted_at` is when each owner's pods were counted, and `released` when each node was released, by node UID. A
    counted pod may end anywhere, a later one only on a released node: a workload of short pods on other nodes shows
    nothing about the driver.
    """
    names = {owner.partition("/")[2] for owner in counted_at}
    first = min([*counted_at.values(), *released.values()])
    rows = PodPlacement.objects.filter(cluster=plan.cluster_id, ended__in=COMPLETED, until__gt=first)
    rows = rows.filter(Q(owner_name__in=names) | Q(name__in=names))
    rows = rows.filter(Q(since__lte=max(counted_at.values())) | Q(node_uid__in=list(released))).order_by("-until")
    columns = ("owner_kind", "namespace", "owner_name", "name", "node_uid", "since", "until")
    found = Counter[str]()
    for *named, node_uid, since, until in rows.values_list(*columns)[:MOST_COMPLETED]:
        owner = _owner(*named)
        counted, freed = counted_at.get(owner), released.get(node_uid)
        if counted and until > counted and (since <= counted or (freed and until > freed)):
            found[owner] += 1
    return found


def refused(plan: Rollout, since: Mapping[str, datetime]) -> dict[str, str]:
    """Returns why the last pod of each owner was rejected, for owners whose last pod was. At most two queries.

    A rejected pod never exists and is not Pending; only Events of the controller tell of it (Z31). An Event can outlive
    its cause: a newer pod of the owner shows that a pod was accepted since. `since` is per owner, by the cluster's
    clock; older Events are not quoted.
    """
    first = min(since.values())
    told = ClusterEvent.objects.filter(cluster=plan.cluster_id, reason=REFUSED, is_warning=True, last_at__gte=first)
    columns = ("about_kind", "about_namespace", "about_name", "last_at", "message")
    last: dict[str, tuple[datetime, str]] = {}
    for kind, namespace, name, at, message in told.order_by("last_at", "pk").values_list(*columns):
        if at is not None:  # never null here: the filter excludes it
            last[f"{kind} {namespace}/{name}"] = (at, message)
    found = {owner: last[owner] for owner, at in since.items() if owner in last and last[owner][0] >= at}
    newest = _newest_pods(plan, found) if found else {}
    return {
        owner: message[:MOST_OF_A_REFUSAL]
        for owner, (at, message) in found.items()
        if owner not in newest or at >= newest[owner]
    }


def _newest_pods(plan: Rollout, owners: Collection[str]) -> dict[str, datetime]:
    """Returns when the API server accepted each owner's newest pod, terminating pods included."""
    by_name = {owner.partition("/")[2] for owner in owners}
    pods = Pod.objects.filter(cluster=plan.cluster_id).filter(Q(owner_name__in=by_name) | Q(name__in=by_name))
    found: dict[str, datetime] = {}
    for *named, at in pods.order_by("created_at").values_list(
        "owner_kind", "namespace", "owner_name", "name", "created_at"
    ):
        found[_owner(*named)] = at
    return {owner: found[owner] for owner in owners if owner in found}


def operands_of(pods: Sequence[Pod]) -> tuple[OperandEvidence, ...]:
    """Returns the operands without ComputeDomain daemons, which come and go with their workload."""
    return tuple(
        OperandEvidence(TITLES.get(pod.operand, pod.operand), pod.is_ready, pod.waiting_reason)
        for pod in pods
        if pod.operand and pod.operand != COMPUTE_DOMAIN and pod.deleted_at is None
    )


def validator_of(pods: Sequence[Pod], ahead: timedelta = timedelta(0)) -> ValidatorEvidence | None:
    """Returns the newest validator pod that is not terminating; None if there is none."""
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
    """Returns why tenants' pods do not run, by pod UID, for a few pods. No query if all run."""
    unready = (pod for mine in pods.values() for pod in mine if not (pod.operand or pod.is_ready or pod.deleted_at))
    reasons = reasons_of(sorted(unready, key=lambda pod: -pod.restarts)[:EXPLAINED_AT_MOST], now=now)
    return {uid: _spell(reason) for uid, reason in reasons.items() if reason.key != "stuck"}


def _spell(reason: PodReason) -> str:
    """Returns the reason, with the telling line if the sentence lacks it."""
    has_line = reason.quote and reason.quote not in reason.sentence
    return f"{reason.sentence} “{reason.quote[:MOST_OF_A_LINE]}”" if has_line else reason.sentence


def workloads_of(
    pods: Sequence[Pod], ahead: timedelta = timedelta(0), why: Mapping[str, str] = NO_CAUSES
) -> tuple[PodEvidence, ...]:
    """Returns the tenants' pods.

    `ahead` is how far the cluster's clock is ahead of ours; `why` comes from `why_unready`.
    """
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
            unready_since=pod.ready_since - ahead if pod.ready_since and not pod.is_ready else None,
            ready_since=pod.ready_since - ahead if pod.ready_since and pod.is_ready else None,
        )
        for pod in pods
        if not pod.operand and pod.deleted_at is None
    )
