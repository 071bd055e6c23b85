"""NVIDIADrivers that say notReady while every driver pod of theirs is ready, and nothing is being upgraded."""

from collections import defaultdict
from collections.abc import Iterable

from fleet.models import Cluster, DriverObject, Node, Operand, OperandRevision, Pod
from gpu.operands import DRIVER
from health.rules.base import StuckDriver
from health.stack.desired import driver_object_of

SETTLED = ("", "upgrade-done")  # upgrade states in which nothing is to happen any more
KIND = "NVIDIADriver"


def stuck_drivers(cluster: Cluster) -> tuple[StuckDriver, ...]:
    """One query where all are ready; another where nodes are being upgraded or held; six at most."""
    objects = list(DriverObject.objects.filter(cluster=cluster))
    waiting = {each.pk for each in objects if each.kind == KIND and each.state == "notReady"}
    nodes = Node.objects.filter(cluster=cluster).with_gpus()
    if not waiting or nodes.exclude(upgrade_state__in=SETTLED).exists() or nodes.filter(is_held=True).exists():
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


def _newest(cluster: Cluster, owners: Iterable[str]) -> dict[str, str]:
    """The hash of the newest template of each DaemonSet, by its UID."""
    revisions = OperandRevision.objects.filter(cluster=cluster, owner_uid__in=list(owners)).order_by("revision")
    return dict(revisions.values_list("owner_uid", "revision_hash"))


def _older(pods: Iterable[Pod], newest: dict[str, str]) -> int:
    hashes = ((pod.revision_hash, newest.get(pod.owner_uid, "")) for pod in pods)
    return sum(bool(mine and theirs and mine != theirs) for mine, theirs in hashes)
