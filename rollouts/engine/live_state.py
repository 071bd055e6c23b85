"""The live state that is read from the API server before a write, since rows are from different moments (Z25)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fleet.allocation.devices import Offered, read_slices
from fleet.models import ResourceSlice
from fleet.observer.mirror.rows.dra import slice_row
from fleet.observer.mirror.rows.driver_object import owners
from fleet.observer.mirror.rows.node import driver_version_in
from fleet.states.pod import ENDED
from gpu.operands import operand_of
from kube import client
from kube.structs import DaemonSetSeen, DriverObjectSeen, NodeSeen, PodSeen, RevisionSeen
from operations.stop_switch import stopped_by_switch
from rollouts.components.base import version_in
from rollouts.engine.workloads import DriverPod
from rollouts.models import Plan
from rollouts.queries.driver_nodes import driver_daemonsets


@dataclass(frozen=True)
class Live:
    object_version: str
    hashes: Mapping[str, str]  # DaemonSet uid → hash of its newest template
    unsettled: tuple[str, ...]
    stopped_reason: str
    daemonsets: tuple[DaemonSetSeen, ...] = ()  # of the driver object
    spec: Mapping[str, Any] = field(default_factory=dict)  # of the driver object, whole
    object_trouble: str = ""  # why the object cannot be promoted; blank: it is there
    owned_by: tuple[str, ...] = ()  # who else writes the object, by GitOps' and Helm's own marks


@dataclass(frozen=True)
class NodesNow:
    """All nodes of the cluster and the driver pods of the object, as the API server lists them."""

    nodes: tuple[NodeSeen, ...]
    unread: Mapping[str, str]  # uid → name of nodes that are there and cannot be read
    driver_pods: Mapping[str, DriverPod]  # by name of the node
    offered: Mapping[str, Offered] = field(default_factory=dict)  # by DRA drivers; by name of the node


def newest_of(revisions: Iterable[RevisionSeen]) -> dict[str, str]:
    """Returns the hash of each DaemonSet's newest template, by DaemonSet UID."""
    return {one.daemonset_uid: one.revision_hash for one in sorted(revisions, key=lambda one: one.revision)}


def ask_cluster(plan: Plan, connection: client.Connection) -> Live:
    """Reads the live state.

    :raises ClusterError: when the cluster does not answer, so that nothing is decided
    """
    stopped_reason = stopped_in_cluster(plan, connection)
    seen, spec = _driver_object(plan, connection)
    known = driver_daemonsets(plan)
    daemonsets = [
        daemonset
        for namespace in sorted({row.namespace for row in known})
        for daemonset in client.list_daemonsets(connection, namespace=namespace)
        if _is_its_driver(plan, daemonset)
    ]
    uids = {daemonset.uid for daemonset in daemonsets}
    revisions = [
        revision
        for namespace in sorted({daemonset.namespace for daemonset in daemonsets})
        for revision in client.list_revisions(connection, namespace=namespace)
        if revision.daemonset_uid in uids
    ]
    return Live(
        object_version=version_in(plan.its_component, spec) if seen and seen.uid == plan.object_uid else "",
        object_trouble=_trouble(plan, seen),
        spec=spec,
        hashes=newest_of(revisions),
        unsettled=tuple(one.name for one in daemonsets if not one.is_current),
        stopped_reason=stopped_reason,
        daemonsets=tuple(daemonsets),
        owned_by=tuple(owners(seen)) if seen else (),
    )


def stopped_in_cluster(plan: Plan, connection: client.Connection) -> str:
    """Returns the reason in the stop's ConfigMap, which somebody made with kubectl; empty means there is none.

    :raises ClusterError: when the cluster does not answer
    """
    return stopped_by_switch(plan.cluster, connection)


def _is_its_driver(plan: Plan, daemonset: DaemonSetSeen) -> bool:
    """Returns whether the DaemonSet is the object's driver. A ClusterPolicy owns the DaemonSets of all operands."""
    owner = daemonset.metadata.owner
    is_what_changes = operand_of(daemonset.pod_labels, daemonset.name) == plan.its_component.operand
    return owner is not None and owner.uid == plan.object_uid and is_what_changes


def ask_nodes(plan: Plan, connection: client.Connection, daemonsets: Sequence[DaemonSetSeen]) -> NodesNow:
    """Lists all nodes, the pods of each DaemonSet, and ResourceSlices where only they name a node's driver.

    In a large cluster this takes seconds, so not every round asks.

    :raises ClusterError: when the cluster does not answer
    """
    pods = [pod for daemonset in daemonsets for pod in _pods_of(connection, daemonset)]
    if plan.its_component.hold is None:  # as `driver_pods` reads rows
        pods = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    found = {
        pod.spec.node_name: DriverPod(pod.metadata.owner.uid, pod.labels.get("controller-revision-hash", ""))
        for pod in sorted(pods, key=lambda one: one.metadata.deletion_timestamp is None)
        if pod.spec.node_name and pod.metadata.owner
    }
    nodes, unread = client.list_nodes_and_unread(connection)
    is_unnamed = any(node.name in found and not driver_version_in(node.labels) for node in nodes)
    offered = _offered(plan, connection) if is_unnamed else {}
    return NodesNow(tuple(nodes), {one.uid: one.name for one in unread}, found, offered)


def _offered(plan: Plan, connection: client.Connection) -> Mapping[str, Offered]:
    """Returns what DRA drivers offer now. It asks nothing where no driver ever offered anything."""
    if not has_slices(plan):
        return {}
    of_cluster = {"cluster__server_version": plan.cluster.server_version}
    return read_slices(slice_row(seen) | of_cluster for seen in client.list_slices(connection))


def has_slices(plan: Plan) -> bool:
    return ResourceSlice.objects.filter(cluster=plan.cluster_id).exists()


def _pods_of(connection: client.Connection, daemonset: DaemonSetSeen) -> Iterator[PodSeen]:
    selector = ",".join(f"{key}={value}" for key, value in sorted(daemonset.pod_selector.items()))
    for pod in client.list_pods(connection, namespace=daemonset.namespace, label_selector=selector):
        is_its = pod.metadata.owner is not None and pod.metadata.owner.uid == daemonset.uid
        if is_its and pod.status.phase not in ENDED:
            yield pod


def _driver_object(
    plan: Plan, connection: client.Connection
) -> tuple[DriverObjectSeen, Mapping[str, Any]] | tuple[None, Mapping[str, Any]]:
    """Returns the driver object with its whole spec from one request; two requests could mix two specs."""
    try:
        return client.get_driver_object_whole(connection, plan.object_kind, plan.object_name)
    except client.Absent:
        return None, {}


def _trouble(plan: Plan, seen: DriverObjectSeen | None) -> str:
    if seen is None:
        return f"{plan.object_kind} {plan.object_name} was deleted."
    if seen.uid != plan.object_uid:
        return f"{plan.object_kind} {plan.object_name} was deleted and created again, so it is a different object."
    return ""
