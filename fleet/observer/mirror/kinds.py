"""The watched kinds: the builder of each kind's rows, and its prerequisites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from django.db import models

from fleet.models import OtherPod
from fleet.models.kinds import MIRRORED
from fleet.models.queues import QueueSystem
from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.rows.admission import limit_range_row, priority_class_row, quota_row
from fleet.observer.mirror.rows.autoscalers import autoscaler_row, node_claim_row, node_pool_row
from fleet.observer.mirror.rows.cpu_memory import other_pod_row
from fleet.observer.mirror.rows.dra import claim_row, class_row, slice_row
from fleet.observer.mirror.rows.driver_object import driver_object_row
from fleet.observer.mirror.rows.event import event_row
from fleet.observer.mirror.rows.namespaces import namespace_row
from fleet.observer.mirror.rows.node import node_row
from fleet.observer.mirror.rows.operand import operand_row, revision_row
from fleet.observer.mirror.rows.operator_config import config_row
from fleet.observer.mirror.rows.pod import is_kept, pod_row
from fleet.observer.mirror.rows.policy import budget_row
from fleet.observer.mirror.rows.queues import kueue_workload_row, pod_group_row, queue_row
from fleet.observer.mirror.rows.storage import csi_node_row, storage_class_row, volume_claim_row, volume_row
from fleet.observer.mirror.rows.topology import topology_row
from fleet.observer.mirror.rows.workload import grouped_row, workload_row
from fleet.observer.mirror.watch_scope import MIG, SHARING, USUAL_NAMESPACE, WatchScope
from kube.client.discovery import NotServed
from kube.resources import (
    CLUSTER_POLICIES,
    CLUSTER_QUEUES,
    CSI_NODES,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    DISRUPTION_BUDGETS,
    EVENTS,
    GPU_CLUSTERS,
    JOB_SETS,
    JOBS,
    KAI_GROUPS,
    KUEUE_WORKLOADS,
    LEADER_WORKER_SETS,
    LIMIT_RANGES,
    LOCAL_QUEUES,
    MIG_CONFIGS,
    MPI_JOBS,
    NAMESPACES,
    NODE_CLAIMS,
    NODE_POOLS,
    NODE_TOPOLOGIES,
    NODES,
    NVIDIA_DRIVERS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
    REPLICA_SETS,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    REVISIONS,
    SCALING_STATUS,
    SHARING_CONFIGS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLCANO_GROUPS,
    VOLUME_CLAIMS,
    Resource,
)


@dataclass(frozen=True)
class Kind:
    resource: Resource[Any]
    model: Any  # a model class with `cluster` and `uid`
    row: Callable[[Any, WatchScope], Columns | None]  # returns None for an object that is not stored
    after: tuple[str, ...] = ()  # kinds whose list must be complete first, since they decide which objects are stored
    is_listed_again: bool = True  # list again when the selecting objects become more
    moves_plans: bool = True  # its changes may concern plans
    shares: tuple[tuple[str, str], ...] = ()  # filter for this kind's rows in a shared model
    where: Callable[[Resource[Any], WatchScope], Resource[Any]] | None = None  # None: all namespaces
    weight: int = 1  # relative cost in a transaction
    rest: Kind | None = None  # reduced rows for objects that are otherwise not stored
    called: str = ""  # blank: the resource's name
    row_version: int = 0  # higher with each new value of its rows: objects that never change are listed for it

    @cached_property
    def name(self) -> str:
        return self.called or self.resource.name

    @cached_property
    def parts(self) -> tuple[Kind, ...]:
        """Returns the kinds fed by one watch. An object has a row in at most one."""
        return (self.rest, self) if self.rest else (self,)

    def located(self, scope: WatchScope) -> Resource[Any]:
        """Returns the resource with its location.

        :raises NotServed: when no object is configured
        """
        return self.where(self.resource, scope) if self.where else self.resource

    def rows_of(self, cluster_id: int) -> models.QuerySet[Any]:
        return self.model.objects.filter(cluster_id=cluster_id, **dict(self.shares))


def _named(purpose: str) -> Callable[[Resource[Any], WatchScope], Resource[Any]]:
    """Returns the locator of the ConfigMap named by the ClusterPolicy; no other is ever read."""

    def where(resource: Resource[Any], scope: WatchScope) -> Resource[Any]:
        name = scope.configs.get(purpose)
        if not name:
            raise NotServed(UNNAMED[purpose])
        return replace(resource, namespace=scope.policy_namespace or USUAL_NAMESPACE, only_name=name)

    return where


def _kept_pod(seen: Any, scope: WatchScope) -> Columns | None:
    return pod_row(seen) if is_kept(seen, scope) else None


def _queue(seen: Any, _: WatchScope, *, kind: str) -> Columns:
    return queue_row(seen, kind)


def _pod_group(seen: Any, _: WatchScope, *, system: str) -> Columns | None:
    return pod_group_row(seen, system)


OTHER_PODS = Kind(PODS, OtherPod, lambda seen, _: other_pod_row(seen), moves_plans=False, called="other-pods")
UNNAMED = {
    SHARING: "No ClusterPolicy names a ConfigMap of the device plugin, so no ConfigMap configures GPU sharing.",
    MIG: "No ClusterPolicy runs a MIG manager, so no MIG manager reads a ConfigMap.",
}
WORKLOADS: dict[Resource[Any], tuple[str, ...]] = {
    JOBS: (),
    REPLICA_SETS: (),
    STATEFUL_SETS: (),
    DEPLOYMENTS: (DAEMON_SETS.name,),  # they reveal the operator's namespace
}
GROUPED = (JOB_SETS, LEADER_WORKER_SETS, RAY_CLUSTERS, RAY_JOBS, PYTORCH_JOBS, MPI_JOBS)
POD_GROUPS = {VOLCANO_GROUPS: QueueSystem.VOLCANO.value, KAI_GROUPS: QueueSystem.KAI.value}
QUEUES = {CLUSTER_QUEUES: "ClusterQueue", LOCAL_QUEUES: "LocalQueue"}
CONFIGS: dict[str, Resource[Any]] = {SHARING: SHARING_CONFIGS, MIG: MIG_CONFIGS}
# Kinds whose rows make an event worth storing.
EVENTS_ABOUT = (PODS.name, *(resource.name for resource in (*WORKLOADS, *GROUPED)))


def _read(resource: Resource[Any], row: Callable[[Any, WatchScope], Columns | None], **how: Any) -> Kind:
    """Builds an entry; `fleet.models.kinds` defines its rows."""
    kept = MIRRORED[resource.name]
    return Kind(resource, kept.model, row, shares=kept.shares, **how)


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        _read(NODES, lambda seen, _: node_row(seen), weight=2),  # with its GPUs, pools and events
        _read(PODS, _kept_pod, after=(NODES.name, DAEMON_SETS.name), rest=OTHER_PODS, row_version=3),
        _read(DAEMON_SETS, lambda seen, _: operand_row(seen)),
        _read(REVISIONS, lambda seen, _: revision_row(seen)),
        _read(NVIDIA_DRIVERS, lambda seen, _: driver_object_row(seen)),
        _read(CLUSTER_POLICIES, lambda seen, _: driver_object_row(seen)),
        _read(GPU_CLUSTERS, lambda seen, _: driver_object_row(seen)),
        _read(RESOURCE_SLICES, lambda seen, _: slice_row(seen)),
        _read(RESOURCE_CLAIMS, lambda seen, _: claim_row(seen)),
        _read(DEVICE_CLASSES, lambda seen, _: class_row(seen)),
        _read(NODE_TOPOLOGIES, lambda seen, _: topology_row(seen), moves_plans=False),
        *(_read(resource, workload_row, after=after) for resource, after in WORKLOADS.items()),
        *(_read(resource, lambda seen, _: grouped_row(seen), moves_plans=False) for resource in GROUPED),
        _read(DISRUPTION_BUDGETS, lambda seen, _: budget_row(seen)),
        _read(NAMESPACES, lambda seen, _: namespace_row(seen), moves_plans=False),
        _read(RESOURCE_QUOTAS, lambda seen, _: quota_row(seen)),
        _read(LIMIT_RANGES, lambda seen, _: limit_range_row(seen)),
        _read(PRIORITY_CLASSES, lambda seen, _: priority_class_row(seen)),
        _read(VOLUME_CLAIMS, lambda seen, _: volume_claim_row(seen), moves_plans=False),
        _read(PERSISTENT_VOLUMES, lambda seen, _: volume_row(seen), moves_plans=False, row_version=1),
        _read(STORAGE_CLASSES, lambda seen, _: storage_class_row(seen), moves_plans=False, row_version=1),
        _read(CSI_NODES, lambda seen, _: csi_node_row(seen), moves_plans=False),
        _read(KUEUE_WORKLOADS, lambda seen, _: kueue_workload_row(seen), moves_plans=False),
        *(_read(each, partial(_queue, kind=kind), moves_plans=False) for each, kind in QUEUES.items()),
        *(_read(each, partial(_pod_group, system=system), moves_plans=False) for each, system in POD_GROUPS.items()),
        _read(NODE_POOLS, lambda seen, _: node_pool_row(seen), moves_plans=False),
        _read(NODE_CLAIMS, lambda seen, _: node_claim_row(seen), moves_plans=False),
        _read(SCALING_STATUS, lambda seen, _: autoscaler_row(seen), moves_plans=False),
        *(
            _read(
                resource,
                partial(config_row, purpose=purpose),
                after=(CLUSTER_POLICIES.name, DAEMON_SETS.name),
                where=_named(purpose),
            )
            for purpose, resource in CONFIGS.items()
        ),
        _read(
            EVENTS,
            event_row,
            after=(NODES.name, DAEMON_SETS.name, *EVENTS_ABOUT),
            is_listed_again=False,
            moves_plans=False,  # a troubled cluster sends dozens per second, and each would wake plans
        ),
    )
}
