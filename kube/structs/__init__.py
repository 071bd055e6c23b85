from kube.structs.cluster_objects import ConfigMapSeen, CustomSeen, LeaseSeen, NamespaceSeen, ServerVersion
from kube.structs.daemonset import DaemonSetSeen, RevisionSeen
from kube.structs.driver_object import (
    ClusterPolicySeen,
    DriverObjectSeen,
    GpuClusterSeen,
    NvidiaDriverSeen,
    WholeSpec,
)
from kube.structs.meta import Condition, Seen
from kube.structs.node import NodeSeen, Taint
from kube.structs.pod import PodSeen
