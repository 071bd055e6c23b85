from typing import Any

from msgspec import field

from kube.structs.meta import Condition, Meta, ResourceList, Seen, Struct, find


class Taint(Struct, frozen=True):
    key: str
    value: str | None = ""
    effect: str = ""


class SpecFields(Struct, frozen=True):
    unschedulable: dict[str, Any] | None = field(name="f:unschedulable", default=None)  # `{}`: the manager owns it


class OwnedFields(Struct, frozen=True):
    spec: SpecFields | None = field(name="f:spec", default=None)


class ManagedFields(Struct, frozen=True):
    """The fields that a client owns, as the API server records them. The time is omitted: it changes with each
    heartbeat.

    kubernetes.io/docs/reference/using-api/server-side-apply, Field management.
    """

    manager: str | None = ""  # the client's own name, else the first word of its User-Agent
    fields_v1: OwnedFields | None = field(name="fieldsV1", default=None)

    @property
    def has_cordon(self) -> bool:
        return bool(self.fields_v1 and self.fields_v1.spec and self.fields_v1.spec.unschedulable is not None)


class NodeMeta(Meta, frozen=True):
    managed_fields: list[ManagedFields] | None = None  # ordered by time


class NodeSpec(Struct, frozen=True):
    unschedulable: bool | None = False
    taints: list[Taint] | None = None
    provider_id: str | None = field(name="providerID", default="")


class NodeSystem(Struct, frozen=True):
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    boot_id: str = field(name="bootID", default="")  # changes with each boot


class NodeStatus(Struct, frozen=True):
    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: list[Condition] | None = None
    node_info: NodeSystem = NodeSystem()


class NodeSeen(Seen, frozen=True):
    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> Condition | None:
        """Returns the condition Ready. None: never reported."""
        return find(self.status.conditions, "Ready")

    @property
    def is_unschedulable(self) -> bool:
        return bool(self.spec.unschedulable)

    @property
    def cordoned_by(self) -> str:
        """Returns the field manager that set `spec.unschedulable`. Blank: not set, or not recorded."""
        owners = [fields.manager for fields in self.metadata.managed_fields or () if fields.has_cordon]
        return (owners[-1] or "") if owners and self.is_unschedulable else ""
