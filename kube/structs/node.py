from kube.structs.meta import Condition, ResourceList, Seen, Struct, find


class Taint(Struct, frozen=True):
    key: str
    value: str | None = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool | None = False
    taints: list[Taint] | None = None


class NodeSystem(Struct, frozen=True):
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""


class NodeStatus(Struct, frozen=True):
    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: list[Condition] | None = None
    node_info: NodeSystem = NodeSystem()


class NodeSeen(Seen, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> Condition | None:
        """None: the node never said."""
        return find(self.status.conditions, "Ready")

    @property
    def is_unschedulable(self) -> bool:
        return bool(self.spec.unschedulable)
