"""The kinds with rows, and their models, in the order of pages.

`kube.resources` has their names and paths, and `fleet.observer.mirror.kinds` builds their rows.
"""

from dataclasses import dataclass
from typing import Any

from django.db import models

from fleet.models.autoscalers import ScalingObject
from fleet.models.driver_object import DriverObject
from fleet.models.dynamic_resources import DeviceClass, ResourceClaim, ResourceSlice
from fleet.models.namespaces import ClusterNamespace
from fleet.models.node import Node
from fleet.models.pod import Pod
from fleet.models.queues import QueuedWorkload, QueueSystem, WorkloadQueue
from fleet.models.storage import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from fleet.models.topology import NodeTopology
from fleet.models.workload import (
    ClusterEvent,
    DisruptionBudget,
    LimitRange,
    Operand,
    OperandRevision,
    OperatorConfig,
    PriorityClass,
    ResourceQuota,
    Workload,
)
from kube import resources
from kube.resources import Resource


@dataclass(frozen=True)
class MirroredKind:
    resource: Resource[Any]
    model: type[models.Model]  # with `cluster` and `uid`
    shares: tuple[tuple[str, str], ...] = ()  # filter for this kind's rows in a shared model


MIRRORED: dict[str, MirroredKind] = {
    kind.resource.name: kind
    for kind in (
        MirroredKind(resources.NODES, Node),
        MirroredKind(resources.PODS, Pod),
        MirroredKind(resources.DAEMON_SETS, Operand),
        MirroredKind(resources.REVISIONS, OperandRevision),
        MirroredKind(resources.NVIDIA_DRIVERS, DriverObject, (("kind", "NVIDIADriver"),)),
        MirroredKind(resources.CLUSTER_POLICIES, DriverObject, (("kind", "ClusterPolicy"),)),
        MirroredKind(resources.GPU_CLUSTERS, DriverObject, (("kind", "GPUCluster"),)),
        MirroredKind(resources.JOBS, Workload, (("kind", "Job"),)),
        MirroredKind(resources.REPLICA_SETS, Workload, (("kind", "ReplicaSet"),)),
        MirroredKind(resources.DEPLOYMENTS, Workload, (("kind", "Deployment"),)),
        MirroredKind(resources.STATEFUL_SETS, Workload, (("kind", "StatefulSet"),)),
        MirroredKind(resources.JOB_SETS, Workload, (("kind", "JobSet"),)),
        MirroredKind(resources.LEADER_WORKER_SETS, Workload, (("kind", "LeaderWorkerSet"),)),
        MirroredKind(resources.RAY_CLUSTERS, Workload, (("kind", "RayCluster"),)),
        MirroredKind(resources.RAY_JOBS, Workload, (("kind", "RayJob"),)),
        MirroredKind(resources.PYTORCH_JOBS, Workload, (("kind", "PyTorchJob"),)),
        MirroredKind(resources.MPI_JOBS, Workload, (("kind", "MPIJob"),)),
        MirroredKind(resources.DISRUPTION_BUDGETS, DisruptionBudget),
        MirroredKind(resources.RESOURCE_SLICES, ResourceSlice),
        MirroredKind(resources.RESOURCE_CLAIMS, ResourceClaim),
        MirroredKind(resources.DEVICE_CLASSES, DeviceClass),
        MirroredKind(resources.NODE_TOPOLOGIES, NodeTopology),
        MirroredKind(resources.NAMESPACES, ClusterNamespace),
        MirroredKind(resources.RESOURCE_QUOTAS, ResourceQuota),
        MirroredKind(resources.LIMIT_RANGES, LimitRange),
        MirroredKind(resources.PRIORITY_CLASSES, PriorityClass),
        MirroredKind(resources.VOLUME_CLAIMS, PersistentVolumeClaim),
        MirroredKind(resources.PERSISTENT_VOLUMES, PersistentVolume),
        MirroredKind(resources.STORAGE_CLASSES, StorageClass),
        MirroredKind(resources.CSI_NODES, CsiNode),
        MirroredKind(resources.KUEUE_WORKLOADS, QueuedWorkload, (("system", QueueSystem.KUEUE.value),)),
        MirroredKind(resources.CLUSTER_QUEUES, WorkloadQueue, (("kind", "ClusterQueue"),)),
        MirroredKind(resources.LOCAL_QUEUES, WorkloadQueue, (("kind", "LocalQueue"),)),
        MirroredKind(resources.VOLCANO_GROUPS, QueuedWorkload, (("system", QueueSystem.VOLCANO.value),)),
        MirroredKind(resources.KAI_GROUPS, QueuedWorkload, (("system", QueueSystem.KAI.value),)),
        MirroredKind(resources.NODE_POOLS, ScalingObject, (("kind", "NodePool"),)),
        MirroredKind(resources.NODE_CLAIMS, ScalingObject, (("kind", "NodeClaim"),)),
        MirroredKind(resources.SCALING_STATUS, ScalingObject, (("kind", "ClusterAutoscaler"),)),
        MirroredKind(resources.EVENTS, ClusterEvent),
        MirroredKind(resources.SHARING_CONFIGS, OperatorConfig, (("purpose", "sharing"),)),
        MirroredKind(resources.MIG_CONFIGS, OperatorConfig, (("purpose", "mig"),)),
    )
}
DRIVER_OBJECTS = frozenset(name for name, kind in MIRRORED.items() if kind.model is DriverObject)
KIND_OF_OBJECT = {dict(MIRRORED[name].shares)["kind"]: name for name in DRIVER_OBJECTS}
