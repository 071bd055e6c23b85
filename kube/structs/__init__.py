from kube.structs.cluster_objects import ConfigMapSeen, CustomSeen, LeaseSeen, LeaseSpec, NamespaceSeen, ServerVersion
from kube.structs.daemonset import DaemonSetSeen, RevisionSeen
from kube.structs.driver_object import (
    ClusterPolicySeen,
    DriverObjectSeen,
    DriverSpec,
    GpuClusterSeen,
    NvidiaDriverSeen,
    WholeSpec,
)
from kube.structs.meta import Condition, Meta, OwnerReference, Seen
from kube.structs.node import NodeSeen, Taint
from kube.structs.pod import PodSeen

__all__ = [
    "ClusterPolicySeen",
    "Condition",
    "ConfigMapSeen",
    "CustomSeen",
    "DaemonSetSeen",
    "DriverObjectSeen",
    "DriverSpec",
    "GpuClusterSeen",
    "LeaseSeen",
    "LeaseSpec",
    "Meta",
    "NamespaceSeen",
    "NodeSeen",
    "NvidiaDriverSeen",
    "OwnerReference",
    "PodSeen",
    "RevisionSeen",
    "Seen",
    "ServerVersion",
    "Taint",
    "WholeSpec",
]
