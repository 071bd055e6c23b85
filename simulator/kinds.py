"""What the API server serves: one line a kind, as discovery and the store both need it."""

from dataclasses import dataclass, replace
from enum import StrEnum

READ_WRITE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    has_status: bool = False
    has_scale: bool = False
    has_generation: bool = False
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    is_custom: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The name that messages of the API server use: `nodes`, `daemonsets.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def shelf(self) -> tuple[str, str]:
        """All versions of one resource are the same objects."""
        return (self.group, self.plural)

    @property
    def singular(self) -> str:
        return self.name.lower()


NODE = Kind("", "v1", "nodes", "Node", namespaced=False, short=("no",), has_status=True, subresources=("proxy",))
POD = Kind(
    "",
    "v1",
    "pods",
    "Pod",
    short=("po",),
    has_status=True,
    subresources=("binding", "eviction", "log", "proxy"),
    categories=("all",),
)
NAMESPACE = Kind(
    "", "v1", "namespaces", "Namespace", namespaced=False, short=("ns",), has_status=True, subresources=("finalize",)
)
EVENT = Kind("", "v1", "events", "Event", short=("ev",))
CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap", short=("cm",))
SECRET = Kind("", "v1", "secrets", "Secret")
SERVICE_ACCOUNT = Kind("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",))
SERVICE = Kind("", "v1", "services", "Service", short=("svc",), has_status=True, categories=("all",))
RESOURCE_QUOTA = Kind("", "v1", "resourcequotas", "ResourceQuota", short=("quota",), has_status=True)
LIMIT_RANGE = Kind("", "v1", "limitranges", "LimitRange", short=("limits",))
VOLUME_CLAIM = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",), has_status=True)
VOLUME = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False, short=("pv",), has_status=True)

DAEMON_SET = Kind(
    "apps",
    "v1",
    "daemonsets",
    "DaemonSet",
    short=("ds",),
    has_status=True,
    has_generation=True,
    categories=("all",),
)
REPLICA_SET = Kind(
    "apps",
    "v1",
    "replicasets",
    "ReplicaSet",
    short=("rs",),
    has_status=True,
    has_scale=True,
    has_generation=True,
    categories=("all",),
)
DEPLOYMENT = Kind(
    "apps",
    "v1",
    "deployments",
    "Deployment",
    short=("deploy",),
    has_status=True,
    has_scale=True,
    has_generation=True,
    categories=("all",),
)
STATEFUL_SET = Kind(
    "apps",
    "v1",
    "statefulsets",
    "StatefulSet",
    short=("sts",),
    has_status=True,
    has_scale=True,
    has_generation=True,
    categories=("all",),
)
CONTROLLER_REVISION = Kind("apps", "v1", "controllerrevisions", "ControllerRevision")

JOB = Kind("batch", "v1", "jobs", "Job", has_status=True, has_generation=True, categories=("all",))
CRON_JOB = Kind(
    "batch", "v1", "cronjobs", "CronJob", short=("cj",), has_status=True, has_generation=True, categories=("all",)
)
DISRUPTION_BUDGET = Kind(
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",), has_status=True, has_generation=True
)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short=("pc",))
CSI_NODE = Kind("storage.k8s.io", "v1", "csinodes", "CSINode", namespaced=False)
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False, short=("sc",))

ROLE = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)

RESOURCE_SLICE = Kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False, has_generation=True)
RESOURCE_CLAIM = Kind("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", has_status=True)
CLAIM_TEMPLATE = Kind("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
DEVICE_CLASS = Kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False, has_generation=True)
DEFINITION = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
    short=("crd", "crds"),
    has_status=True,
    has_generation=True,
    categories=("api-extensions",),
)

BUILT_IN: tuple[Kind, ...] = (
    NODE,
    POD,
    NAMESPACE,
    EVENT,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    SERVICE,
    RESOURCE_QUOTA,
    LIMIT_RANGE,
    VOLUME_CLAIM,
    VOLUME,
    CSI_NODE,
    STORAGE_CLASS,
    DAEMON_SET,
    REPLICA_SET,
    DEPLOYMENT,
    STATEFUL_SET,
    CONTROLLER_REVISION,
    JOB,
    CRON_JOB,
    DISRUPTION_BUDGET,
    LEASE,
    PRIORITY_CLASS,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    RESOURCE_SLICE,
    RESOURCE_CLAIM,
    CLAIM_TEMPLATE,
    DEVICE_CLASS,
    DEFINITION,
)


class ResourceApi(StrEnum):
    """How the group resource.k8s.io is served."""

    V1 = "v1"  # since Kubernetes 1.34
    V1BETA2 = "v1beta2"  # 1.33, beside v1beta1; shaped as v1
    V1BETA1 = "v1beta1"  # 1.32 and 1.33, where it was switched on
    NONE = "none"


def served(resource_api: ResourceApi) -> tuple[Kind, ...]:
    if resource_api is ResourceApi.V1:
        return BUILT_IN
    rest = tuple(kind for kind in BUILT_IN if kind.group != "resource.k8s.io")
    if resource_api is ResourceApi.NONE:
        return rest
    beta = [replace(kind, version=str(resource_api)) for kind in BUILT_IN if kind.group == "resource.k8s.io"]
    return (*rest, *beta)
