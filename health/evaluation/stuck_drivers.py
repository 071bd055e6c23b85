"""The operator's objects that are notReady while all their pods are ready, and NVIDIADrivers that conflict.

gpu-operator, controllers/object_controls.go (isDaemonSetReady): if an operand's pods are replaced only by a person
(OnDelete), every pod must have the newest template. internal/conditions/nvidiadriver.go: ConflictingNodeSelector.
Before pull 2289 the object stayed ready, so the condition counts.
"""

from collections import defaultdict
from collections.abc import Iterable

from fleet.models import Cluster, DriverObject, Node, Operand, OperandRevision, Pod
from gpu.labels import DEPLOY_PREFIX
from gpu.operands import DRIVER, title_of
from health.rules.base import DriverConflict, StuckDriver, StuckPolicy
from health.stack.desired import driver_object_of

SETTLED = ("", "upgrade-done")  # final upgrade states
KIND, POLICY = "NVIDIADriver", "ClusterPolicy"
CONFLICT = "ConflictingNodeSelector"


def stuck_drivers(cluster: Cluster) -> tuple[StuckDriver, ...]:
    """Returns stuck drivers. One query if all are ready; another if nodes are being upgraded or held; six at most."""
    objects = list(DriverObject.objects.filter(cluster=cluster))
    waiting = {each.pk for each in objects if each.kind == KIND and each.state == "notReady"}
    if not waiting or _is_upgrading(cluster):
        return ()
    pods = Pod.objects.filter(cluster=cluster, operand=DRIVER, deleted_at=None).not_done().exclude(node=None)
    owners = {each.uid: each for each in Operand.objects.filter(cluster=cluster, operand=DRIVER)}
    newest = _newest(cluster, owners)
    mine: dict[int, list[Pod]] = defaultdict(list)
    for pod in pods.select_related("node"):
        asks = driver_object_of(pod.node, objects, owners.get(pod.owner_uid)) if pod.node else None
        if asks is not None and asks.pk in waiting:
            mine[asks.pk].append(pod)
    return tuple(
        StuckDriver(each.name, len(mine[each.pk]), _older(mine[each.pk], newest), each.message)
        for each in objects
        if mine[each.pk] and all(pod.is_ready for pod in mine[each.pk])
    )


def stuck_policy(cluster: Cluster) -> StuckPolicy | None:
    """Returns the stuck policy. One query if it is ready; five at most.

    None if its operands explain the state, or an upgrade is in progress.
    """
    policy = DriverObject.objects.filter(cluster=cluster, kind=POLICY, state="notReady").first()
    if policy is None or policy.message.startswith(CONFLICT) or _is_upgrading(cluster):
        return None
    owners = {
        each.uid: each
        for each in Operand.objects.filter(cluster=cluster)
        if any(key.startswith(DEPLOY_PREFIX) for key in each.node_selector)
    }
    pods = list(Pod.objects.filter(cluster=cluster, owner_uid__in=list(owners), deleted_at=None).not_done())
    if not pods or any(owner.desired > owner.ready for owner in owners.values()):
        return None
    if not all(pod.is_ready for pod in pods):
        return None
    newest = _newest(cluster, owners)
    older = {title_of(pod.operand) for pod in pods if _older([pod], newest)}
    return StuckPolicy(policy.name, len(pods), tuple(sorted(older)), policy.message)


def driver_conflict(cluster: Cluster) -> DriverConflict | None:
    """Returns the conflict, with one query."""
    objects = DriverObject.objects.filter(cluster=cluster, kind=KIND, message__startswith=CONFLICT).order_by("name")
    rows = list(objects)
    return DriverConflict(tuple(row.name for row in rows), rows[0].message) if rows else None


def _is_upgrading(cluster: Cluster) -> bool:
    nodes = Node.objects.filter(cluster=cluster).with_gpus()
    return nodes.exclude(upgrade_state__in=SETTLED).exists() or nodes.filter(is_held=True).exists()


def _newest(cluster: Cluster, owners: Iterable[str]) -> dict[str, str]:
    """Returns the hash of the newest template of each DaemonSet by its UID."""
    revisions = OperandRevision.objects.filter(cluster=cluster, owner_uid__in=list(owners)).order_by("revision")
    return dict(revisions.values_list("owner_uid", "revision_hash"))


def _older(pods: Iterable[Pod], newest: dict[str, str]) -> int:
    hashes = ((pod.revision_hash, newest.get(pod.owner_uid, "")) for pod in pods)
    return sum(bool(mine and theirs and mine != theirs) for mine, theirs in hashes)
