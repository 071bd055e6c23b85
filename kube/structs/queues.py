"""Objects of queues in front of the scheduler: Kueue's, and the PodGroups of Volcano and KAI.

Kueue: kubernetes-sigs/kueue@ff69552e79, apis/kueue/{v1beta2,v1beta1}/{workload,clusterqueue,localqueue}_types.go, which
differ here only in the name of the cohort. Volcano: volcano-sh/apis@062ae57e, pkg/apis/scheduling/v1beta1/types.go.
KAI: NVIDIA/KAI-Scheduler@10965f0d, pkg/apis/scheduling/v2alpha2/podgroup_types.go.
"""

from datetime import datetime

from kube.structs.meta import Condition, ResourceList, Seen, Struct


class PodSet(Struct, frozen=True):
    count: int | None = 0


class KueueWorkloadSpec(Struct, frozen=True):
    queue_name: str | None = ""
    priority: int | None = 0
    active: bool | None = True
    pod_sets: list[PodSet] | None = None


class Admission(Struct, frozen=True):
    cluster_queue: str | None = ""


class PodSetRequest(Struct, frozen=True):
    """The requests of all pods of a set. Only while the workload waits."""

    resources: ResourceList | None = None


class AdmissionCheck(Struct, frozen=True):
    name: str = ""
    state: str | None = ""  # Pending, Ready, Retry, Rejected
    message: str | None = ""


class KueueWorkloadStatus(Struct, frozen=True):
    conditions: list[Condition] | None = None
    admission: Admission | None = None
    resource_requests: list[PodSetRequest] | None = None
    admission_checks: list[AdmissionCheck] | None = None


class KueueWorkloadSeen(Seen, frozen=True):
    spec: KueueWorkloadSpec = KueueWorkloadSpec()
    status: KueueWorkloadStatus = KueueWorkloadStatus()


class FlavorResource(Struct, frozen=True):
    name: str = ""
    nominal_quota: str | int | float | None = None
    borrowing_limit: str | int | float | None = None  # absent: no limit within the cohort
    total: str | int | float | None = None  # in a status: the reserved amount
    borrowed: str | int | float | None = None


class Flavor(Struct, frozen=True):
    name: str = ""
    resources: list[FlavorResource] | None = None


class ResourceGroup(Struct, frozen=True):
    flavors: list[Flavor] | None = None


class QueueSpec(Struct, frozen=True):
    """The spec of a ClusterQueue, or of a LocalQueue, which has only a ClusterQueue and a stop policy."""

    cluster_queue: str | None = ""
    resource_groups: list[ResourceGroup] | None = None
    cohort_name: str | None = ""
    cohort: str | None = ""  # v1beta1
    queueing_strategy: str | None = ""
    stop_policy: str | None = ""


class QueueStatus(Struct, frozen=True):
    conditions: list[Condition] | None = None
    flavors_reservation: list[Flavor] | None = None
    pending_workloads: int | None = 0


class QueueSeen(Seen, frozen=True):
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()


class PodGroupSpec(Struct, frozen=True):
    min_member: int | None = 0
    queue: str | None = ""
    min_resources: ResourceList | None = None  # Volcano's


class UnschedulableExplanation(Struct, frozen=True):
    reason: str | None = ""
    message: str | None = ""


class SchedulingCondition(Struct, frozen=True):
    """KAI's: why a node pool takes no pod of the group."""

    type: str = ""
    reason: str | None = ""
    message: str | None = ""
    reasons: list[UnschedulableExplanation] | None = None
    last_transition_time: datetime | None = None


class PodGroupStatus(Struct, frozen=True):
    phase: str | None = ""
    conditions: list[Condition] | None = None
    scheduling_conditions: list[SchedulingCondition] | None = None


class PodGroupSeen(Seen, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
