"""The kinds we read: name, API path and struct. A new kind is one line and one struct."""

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from kube.structs import (
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
from kube.structs.autoscalers import NodeClaimSeen, NodePoolSeen
from kube.structs.cluster_objects import BudgetSeen, LimitRangeSeen, PriorityClassSeen, QuotaSeen
from kube.structs.dra import ClaimSeen, ClassSeen, SliceSeen
from kube.structs.events import EventSeen
from kube.structs.pod_groups import (
    JobSetSeen,
    LeaderWorkerSetSeen,
    MPIJobSeen,
    PyTorchJobSeen,
    RayClusterSeen,
    RayJobSeen,
)
from kube.structs.queues import KueueWorkloadSeen, PodGroupSeen, QueueSeen
from kube.structs.storage import CsiNodeSeen, PersistentVolumeSeen, StorageClassSeen, VolumeClaimSeen
from kube.structs.topology import NodeTopologySeen
from kube.structs.workload import DeploymentSeen, JobSeen, ReplicaSetSeen, StatefulSetSeen

S = TypeVar("S", bound=Seen)


@dataclass(frozen=True)
class Resource(Generic[S]):
    group_version: str  # v1, apps/v1
    plural: str
    title: str  # plural name for people; starts a sentence
    struct: type[S]
    older_versions: tuple[str, ...] = ()  # also supported, newest first; discovery tells which one is served
    namespace: str = ""  # blank: all of them
    only_name: str = ""  # blank: every object; else one object by name, to which a Role can be restricted
    is_optional: bool = False  # its rule is left out where a cluster has no such object
    alias: str = ""  # blank: kubectl's name; else a name that tells it apart from others of the same kind

    @property
    def group(self) -> str:
        return self.group_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.group_version.rpartition("/")[2]

    @property
    def query(self) -> dict[str, str | int]:
        """Returns the query parameters of its list and watch."""
        return {"fieldSelector": f"metadata.name={self.only_name}"} if self.only_name else {}

    @cached_property  # read several times per object
    def name(self) -> str:
        """Returns the name as in kubectl and RBAC: nodes, daemonsets.apps."""
        return self.alias or self.kind_name

    @property
    def kind_name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def base(self) -> str:
        return f"/apis/{self.group_version}" if "/" in self.group_version else f"/api/{self.group_version}"

    def path(self, name: str = "", *, namespace: str = "") -> str:
        namespace = namespace or self.namespace
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"{self.base}{where}/{self.plural}" + (f"/{name}" if name else "")


NODES = Resource("v1", "nodes", "Nodes", NodeSeen)
PODS = Resource("v1", "pods", "Pods", PodSeen)
NAMESPACES = Resource("v1", "namespaces", "Namespaces", NamespaceSeen)
CONFIG_MAPS = Resource("v1", "configmaps", "ConfigMaps", ConfigMapSeen)
SHARING_CONFIGS = Resource(
    "v1", "configmaps", "ConfigMaps of the device plugin", ConfigMapSeen, alias="configmaps:sharing"
)
MIG_CONFIGS = Resource("v1", "configmaps", "ConfigMaps of the MIG manager", ConfigMapSeen, alias="configmaps:mig")
DAEMON_SETS = Resource("apps/v1", "daemonsets", "DaemonSets", DaemonSetSeen)
REVISIONS = Resource("apps/v1", "controllerrevisions", "ControllerRevisions", RevisionSeen)
LEASES = Resource("coordination.k8s.io/v1", "leases", "Leases", LeaseSeen)
NVIDIA_DRIVERS = Resource("nvidia.com/v1alpha1", "nvidiadrivers", "NVIDIADrivers", NvidiaDriverSeen)
CLUSTER_POLICIES = Resource("nvidia.com/v1", "clusterpolicies", "ClusterPolicies", ClusterPolicySeen)
GPU_CLUSTERS = Resource("nvidia.com/v1alpha1", "gpuclusters", "GPUClusters", GpuClusterSeen)
JOBS = Resource("batch/v1", "jobs", "Jobs", JobSeen)
REPLICA_SETS = Resource("apps/v1", "replicasets", "ReplicaSets", ReplicaSetSeen)
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployments", DeploymentSeen)
STATEFUL_SETS = Resource("apps/v1", "statefulsets", "StatefulSets", StatefulSetSeen)
DISRUPTION_BUDGETS = Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudgets", BudgetSeen)
RESOURCE_QUOTAS = Resource("v1", "resourcequotas", "ResourceQuotas", QuotaSeen)
LIMIT_RANGES = Resource("v1", "limitranges", "LimitRanges", LimitRangeSeen)
PRIORITY_CLASSES = Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClasses", PriorityClassSeen)
VOLUME_CLAIMS = Resource("v1", "persistentvolumeclaims", "PersistentVolumeClaims", VolumeClaimSeen)
PERSISTENT_VOLUMES = Resource("v1", "persistentvolumes", "PersistentVolumes", PersistentVolumeSeen)
STORAGE_CLASSES = Resource("storage.k8s.io/v1", "storageclasses", "StorageClasses", StorageClassSeen)
CSI_NODES = Resource("storage.k8s.io/v1", "csinodes", "CSINodes", CsiNodeSeen)
EVENTS = Resource("v1", "events", "Events", EventSeen)

OLDER_DRA = ("v1beta2", "v1beta1")
RESOURCE_SLICES = Resource("resource.k8s.io/v1", "resourceslices", "ResourceSlices", SliceSeen, OLDER_DRA)
RESOURCE_CLAIMS = Resource("resource.k8s.io/v1", "resourceclaims", "ResourceClaims", ClaimSeen, OLDER_DRA)
DEVICE_CLASSES = Resource("resource.k8s.io/v1", "deviceclasses", "DeviceClasses", ClassSeen, OLDER_DRA)

OLDER_KUEUE = ("v1beta1",)
KUEUE_WORKLOADS = Resource("kueue.x-k8s.io/v1beta2", "workloads", "Workloads of Kueue", KueueWorkloadSeen, OLDER_KUEUE)
CLUSTER_QUEUES = Resource("kueue.x-k8s.io/v1beta2", "clusterqueues", "ClusterQueues", QueueSeen, OLDER_KUEUE)
LOCAL_QUEUES = Resource("kueue.x-k8s.io/v1beta2", "localqueues", "LocalQueues", QueueSeen, OLDER_KUEUE)
VOLCANO_GROUPS = Resource("scheduling.volcano.sh/v1beta1", "podgroups", "PodGroups of Volcano", PodGroupSeen)
KAI_GROUPS = Resource("scheduling.run.ai/v2alpha2", "podgroups", "PodGroups of KAI", PodGroupSeen)

JOB_SETS = Resource("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSets", JobSetSeen)
LEADER_WORKER_SETS = Resource(
    "leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSets", LeaderWorkerSetSeen
)
RAY_CLUSTERS = Resource("ray.io/v1", "rayclusters", "RayClusters", RayClusterSeen, ("v1alpha1",))
RAY_JOBS = Resource("ray.io/v1", "rayjobs", "RayJobs", RayJobSeen, ("v1alpha1",))
PYTORCH_JOBS = Resource("kubeflow.org/v1", "pytorchjobs", "PyTorchJobs", PyTorchJobSeen)
MPI_JOBS = Resource("kubeflow.org/v2beta1", "mpijobs", "MPIJobs", MPIJobSeen, ("v1",))

NODE_TOPOLOGIES = Resource(
    "topology.node.k8s.io/v1alpha2", "noderesourcetopologies", "NodeResourceTopologies", NodeTopologySeen, ("v1alpha1",)
)

NODE_POOLS = Resource("karpenter.sh/v1", "nodepools", "NodePools", NodePoolSeen, ("v1beta1",))
NODE_CLAIMS = Resource("karpenter.sh/v1", "nodeclaims", "NodeClaims", NodeClaimSeen, ("v1beta1",))
SCALING_STATUS = Resource(
    "v1", "configmaps", "Status of the cluster autoscaler", ConfigMapSeen,
    namespace="kube-system", only_name="cluster-autoscaler-status", is_optional=True, alias="configmaps:autoscaler",
)  # fmt: skip

EVERY = tuple(value for value in globals().values() if isinstance(value, Resource))

DRIVER_OBJECTS: dict[str, Resource[NvidiaDriverSeen] | Resource[ClusterPolicySeen]] = {
    "NVIDIADriver": NVIDIA_DRIVERS,
    "ClusterPolicy": CLUSTER_POLICIES,
}
