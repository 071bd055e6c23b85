"""The kinds we read: where they are served, and what we keep of each. Adding one is a line here and a struct."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from fleet.kube.structs import (
    ClusterPolicySeen,
    ConfigMapSeen,
    DaemonSetSeen,
    GpuClusterSeen,
    LeaseSeen,
    NamespaceSeen,
    NodeSeen,
    NvidiaDriverSeen,
    PodSeen,
    RevisionSeen,
    Seen,
)

S = TypeVar("S", bound=Seen)


@dataclass(frozen=True)
class Resource(Generic[S]):
    group_version: str  # v1, apps/v1
    plural: str
    struct: type[S]

    @property
    def name(self) -> str:
        """As kubectl and RBAC call it: nodes, daemonsets.apps."""
        group, _, version = self.group_version.rpartition("/")
        return f"{self.plural}.{group}" if group and version else self.plural

    @property
    def base(self) -> str:
        return f"/apis/{self.group_version}" if "/" in self.group_version else f"/api/{self.group_version}"

    def path(self, name: str = "", *, namespace: str = "") -> str:
        """Of one object, or of all of them; in one namespace, or in all."""
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.base}{where}/{self.plural}" + (f"/{name}" if name else "")


NODES = Resource("v1", "nodes", NodeSeen)
PODS = Resource("v1", "pods", PodSeen)
NAMESPACES = Resource("v1", "namespaces", NamespaceSeen)
CONFIG_MAPS = Resource("v1", "configmaps", ConfigMapSeen)
DAEMON_SETS = Resource("apps/v1", "daemonsets", DaemonSetSeen)
REVISIONS = Resource("apps/v1", "controllerrevisions", RevisionSeen)
LEASES = Resource("coordination.k8s.io/v1", "leases", LeaseSeen)
NVIDIA_DRIVERS = Resource("nvidia.com/v1alpha1", "nvidiadrivers", NvidiaDriverSeen)
CLUSTER_POLICIES = Resource("nvidia.com/v1", "clusterpolicies", ClusterPolicySeen)
GPU_CLUSTERS = Resource("nvidia.com/v1alpha1", "gpuclusters", GpuClusterSeen)

DRIVER_OBJECTS: dict[str, Resource[NvidiaDriverSeen] | Resource[ClusterPolicySeen]] = {
    "NVIDIADriver": NVIDIA_DRIVERS,
    "ClusterPolicy": CLUSTER_POLICIES,
}
