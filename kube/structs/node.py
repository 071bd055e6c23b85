from typing import Any

from msgspec import field

from kube.structs.meta import Condition, Meta, ResourceList, Seen, Struct, find


class Taint(Struct, frozen=True):
    key: str
    value: str | None = ""
    effect: str = ""


class SpecFields(Struct, frozen=True):
    unschedulable: dict[str, Any] | None = field(name="f:unschedulable", default=None)  # `{}`: it is its manager's


class OwnedFields(Struct, frozen=True):
    spec: SpecFields | None = field(name="f:spec", default=None)


class ManagedFields(Struct, frozen=True):
    """Which fields a client wrote last, as the API server keeps it. Not when: that moves with each heartbeat.

    kubernetes.io/docs/reference/using-api/server-side-apply, Field management.
    """

    manager: str | None = ""  # as the client named itself, else the first word of its User-Agent
    fields_v1: OwnedFields | None = field(name="fieldsV1", default=None)

    @property
    def has_cordon(self) -> bool:
        return bool(self.fields_v1 and self.fields_v1.spec and self.fields_v1.spec.unschedulable is not None)


class NodeMeta(Meta, frozen=True):
    managed_fields: list[ManagedFields] | None = None  # in the order of their times


class NodeSpec(Struct, frozen=True):
    unschedulable: bool | None = False
    taints: list[Taint] | None = None


class NodeSystem(Struct, frozen=True):
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    boot_id: str = field(name="bootID", default="")  # another one with each boot of its kernel


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
        """None: the node never said."""
        return find(self.status.conditions, "Ready")

    @property
    def is_unschedulable(self) -> bool:
        return bool(self.spec.unschedulable)

    @property
    def cordoned_by(self) -> str:
        """The field manager that set `spec.unschedulable`. Blank: it is not set, or the API server does not say."""
        owners = [each.manager for each in self.metadata.managed_fields or () if each.has_cordon]
        return (owners[-1] or "") if owners and self.is_unschedulable else ""
