from datetime import datetime
from typing import Any

import msgspec

from kube.structs.meta import UNREAD, Condition, ResourceList, Seen, Struct, Variable, find


class Resources(Struct, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class Container(Struct, frozen=True):
    name: str = ""
    image: str | None = ""
    resources: Resources | None = None
    env: list[Variable] | None = None
    restart_policy: str | None = ""  # Always, on an init container: a sidecar, which keeps its resources
    ports: msgspec.Raw = UNREAD
    security_context: msgspec.Raw = UNREAD


class VolumeClaim(Struct, frozen=True):
    claim_name: str = ""


class Volume(Struct, frozen=True):
    name: str = ""
    empty_dir: dict[str, Any] | None = None
    persistent_volume_claim: VolumeClaim | None = None
    ephemeral: dict[str, Any] | None = None  # its claim has the names of the pod and of the volume


class ClaimReference(Struct, frozen=True):
    """A reference to a ResourceClaim, by name or by its template. With a template the pod's status has the claim's
    name."""

    name: str = ""
    resource_claim_name: str | None = ""


class ByClaim(Struct, frozen=True):
    """A request for an extended resource that DRA satisfies (KEP-5004)."""

    resource_name: str = ""


class ExtendedResourceClaim(Struct, frozen=True):
    request_mappings: list[ByClaim] | None = None
    resource_claim_name: str | None = ""


class PodSpec(Struct, frozen=True):
    node_name: str | None = ""
    runtime_class_name: str | None = ""
    priority_class_name: str | None = ""
    resource_claims: list[ClaimReference] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    volumes: list[Volume] | None = None
    resources: Resources | None = None  # of the whole pod
    overhead: ResourceList | None = None  # cost of its runtime class beside its containers
    scheduler_name: str | None = ""
    priority: int | None = None
    preemption_policy: str | None = ""
    # Read only for pods without a node. Decoding these for every pod would double the time of a first list.
    node_selector: msgspec.Raw = UNREAD
    affinity: msgspec.Raw = UNREAD
    tolerations: msgspec.Raw = UNREAD
    topology_spread_constraints: msgspec.Raw = UNREAD
    scheduling_gates: msgspec.Raw = UNREAD
    scheduling_group: msgspec.Raw = UNREAD  # from Kubernetes 1.36 on
    workload_ref: msgspec.Raw = UNREAD  # of 1.35


class ContainerStateWaiting(Struct, frozen=True):
    reason: str | None = ""
    message: str | None = ""


class ContainerStateTerminated(Struct, frozen=True):
    exit_code: int = 0
    signal: int | None = None
    reason: str | None = ""
    message: str | None = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerStateRunning(Struct, frozen=True):
    """The running state; its fields are not read."""


class ContainerState(Struct, frozen=True):
    running: ContainerStateRunning | None = None
    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class DeviceHealth(Struct, frozen=True):
    resource_id: str | None = msgspec.field(default="", name="resourceID")
    health: str | None = ""  # Healthy, Unhealthy, Unknown


class AllocatedResource(Struct, frozen=True):
    """The devices of a container, if the kubelet reports them (KEP-4680)."""

    name: str = ""  # nvidia.com/gpu, or claim:<name of the claim in the pod>/<request>
    resources: list[DeviceHealth] | None = None


class ContainerStatus(Struct, frozen=True):
    name: str = ""
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    allocated_resources_status: list[AllocatedResource] | None = None


class PodStatus(Struct, frozen=True):
    phase: str = ""
    reason: str | None = ""
    message: str | None = ""
    start_time: datetime | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[ClaimReference] | None = None
    extended_resource_claim_status: ExtendedResourceClaim | None = None
    nominated_node_name: str | None = ""

    @property
    def of_all_containers(self) -> list[ContainerStatus]:
        """Returns the statuses of init containers, then of the others."""
        return [*(self.init_container_statuses or ()), *(self.container_statuses or ())]


class PodSeen(Seen, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def ready(self) -> Condition | None:
        return find(self.status.conditions, "Ready")

    @property
    def scheduled(self) -> Condition | None:
        return find(self.status.conditions, "PodScheduled")
