"""Objects that are read one at a time: Namespace, Lease, ConfigMap, and the server's version."""

from datetime import datetime
from typing import Any

from kube.structs.meta import Condition, ResourceList, Seen, Struct


class NamespaceStatus(Struct, frozen=True):
    conditions: list[Condition] | None = None  # only while it is being deleted


class NamespaceSeen(Seen, frozen=True):
    """A Namespace. The UID of kube-system identifies the cluster."""

    status: NamespaceStatus | None = None


class ConfigMapSeen(Seen, frozen=True):
    data: dict[str, str] | None = None

    @property
    def values(self) -> dict[str, str]:
        return self.data or {}


class UnhealthyNode(Struct, frozen=True):
    name: str = ""
    remediations: list[Any] | None = None  # that are not deleted yet


class NodeReference(Struct, frozen=True):
    name: str = ""


class CustomStatus(Struct, frozen=True):
    completion_time: str | None = ""
    conditions: list[Condition] | None = None
    unhealthy_nodes: list[UnhealthyNode] | None = None  # of a NodeHealthCheck
    in_flight_remediations: dict[str, Any] | None = None  # by node; of its older releases
    node_ref: NodeReference | None = None  # of a Machine


class CustomSeen(Seen, frozen=True):
    """An object of a kind of a controller that repairs nodes."""

    status: CustomStatus = CustomStatus()


class LeaseSpec(Struct, frozen=True):
    holder_identity: str | None = ""
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = 0


class LeaseSeen(Seen, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class ServerVersion(Struct, frozen=True):
    git_version: str = ""


class AccessStatus(Struct, frozen=True):
    """The status of a SubjectAccessReview. Neither allowed nor denied means that no authorizer decided, so access is
    denied."""

    allowed: bool = False
    reason: str | None = ""
    evaluation_error: str | None = ""  # an error during the decision; the answer may still be right


class AccessReview(Struct, frozen=True):
    status: AccessStatus


class QuotaPart(Struct, frozen=True):
    hard: ResourceList | None = None
    used: ResourceList | None = None  # in a status only


class QuotaSeen(Seen, frozen=True):
    spec: QuotaPart | None = None
    status: QuotaPart | None = None


class Limit(Struct, frozen=True):
    type: str = ""  # Container, Pod, PersistentVolumeClaim
    max: ResourceList | None = None
    min: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None


class LimitRangeSpec(Struct, frozen=True):
    limits: list[Limit] | None = None


class LimitRangeSeen(Seen, frozen=True):
    spec: LimitRangeSpec | None = None


class PriorityClassSeen(Seen, frozen=True):
    """A PriorityClass. It has no spec; its fields are at the top level."""

    value: int = 0
    global_default: bool | None = False
    preemption_policy: str | None = ""  # none: PreemptLowerPriority


class BudgetSpec(Struct, frozen=True):
    selector: dict[str, Any] | None = None  # none selects nothing, {} every pod of the namespace
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = ""


class BudgetStatus(Struct, frozen=True):
    observed_generation: int | None = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class BudgetSeen(Seen, frozen=True):
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None

    @property
    def is_counted(self) -> bool:
        """Tells whether its numbers refer to the current spec. Until then the API server allows no eviction.

        As in kubernetes, pkg/registry/core/pod/storage/eviction.go (checkAndDecrement).
        """
        return self.status is not None and (self.status.observed_generation or 0) >= max(1, self.metadata.generation)
