"""A tiny pure model of the operator's upgrade controller and its nodes (nvidia.md 2.2, 2.3). One tick a reconcile."""

from dataclasses import dataclass, field

OLD, NEW = "570.172.08", "580.95.05"
BAD_KERNEL = "6.8"
NEXT = {
    "cordon-required": "wait-for-jobs-required",
    "wait-for-jobs-required": "pod-deletion-required",
    "pod-deletion-required": "pod-restart-required",
    "validation-required": "uncordon-required",
    "uncordon-required": "upgrade-done",
}
IDLE = ("", "upgrade-done", "upgrade-required")


@dataclass
class Node:
    name: str
    kernel: str
    state: str = "upgrade-done"
    has_label: bool = False
    cordoned_by_others: bool = False
    cordoned_by_operator: bool = False
    template: str = OLD  # what its driver pod was made from: the version, and what somebody made of the rest
    released_by_us: bool = False
    evictions_to_fail: int = 0  # a PodDisruptionBudget keeps the operator from emptying it so often
    is_selected: bool = True  # by the driver object; else it has no driver pod, and the operator leaves its labels
    crashes_for: int = 0  # so many ticks its driver pod does not come up, whichever template it is of

    @property
    def is_broken(self) -> bool:
        """The new driver fails on one kernel."""
        return self.crashes_for > 0 or (version_of(self.template) == NEW and self.kernel == BAD_KERNEL)

    @property
    def loaded(self) -> str:
        return "" if self.is_broken else version_of(self.template)

    @property
    def is_unschedulable(self) -> bool:
        return self.cordoned_by_others or self.cordoned_by_operator

    @property
    def is_at_work(self) -> bool:
        return self.state not in (*IDLE, "upgrade-failed")


def version_of(template: str) -> str:
    return template.partition("+")[0]


@dataclass
class World:
    nodes: dict[str, Node]
    max_parallel: int
    version: str = OLD  # of the driver object
    env: int = 0  # of the driver object: what somebody else changes of it
    template: str = OLD  # of its DaemonSet: follows one tick later
    log: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> str:
        return f"{self.version}+{self.env}" if self.env else self.version

    @property
    def is_settled(self) -> bool:
        return self.wanted == self.template

    def tick(self) -> None:
        driven = [node for node in self.nodes.values() if node.is_selected]
        free = self.max_parallel - sum(node.state not in IDLE for node in driven)
        for node in driven:
            node.crashes_for = max(0, node.crashes_for - 1)
            free -= self._reconcile(node, free)
        self.template = self.wanted

    def _reconcile(self, node: Node, free: int) -> int:
        """How many slots it took."""
        if node.state in ("", "upgrade-done"):
            in_sync = node.template == self.template
            node.state = "upgrade-required" if not in_sync else "upgrade-done"
        elif node.state == "upgrade-required":
            # The label is looked at first; a node that somebody cordoned goes past the slots.
            if not node.has_label and (free > 0 or node.is_unschedulable):
                node.state = "cordon-required"
                return 1
        elif node.state == "pod-deletion-required" and node.evictions_to_fail:
            node.evictions_to_fail -= 1
            node.state = "upgrade-failed"
        elif node.state == "pod-restart-required":
            node.template = self.template
            node.state = "upgrade-failed" if node.is_broken else "validation-required"
        elif node.state == "upgrade-failed":
            if node.template == self.template and not node.is_broken:
                node.state = "uncordon-required"
        else:
            self._go_on(node)
        return 0

    def _go_on(self, node: Node) -> None:
        node.cordoned_by_operator = node.state != "uncordon-required"
        node.state = NEXT[node.state]
        if node.state == "upgrade-done":
            node.released_by_us = False

    def recreate_driver_pod(self, name: str) -> None:
        """It takes the newest template, held or not."""
        self.nodes[name].template = self.template

    def leave(self, name: str) -> None:
        """The object's selector is narrowed: its driver pod goes, the labels stay."""
        self.nodes[name].is_selected = False
        self.nodes[name].released_by_us = False

    def come_back(self, name: str) -> None:
        """With a driver pod of the newest template."""
        self.nodes[name].is_selected = True
        self.nodes[name].template = self.template

    def delete(self, name: str) -> None:
        del self.nodes[name]

    def join(self, name: str, kernel: str) -> None:
        self.nodes[name] = Node(name, kernel, state="", template=self.template)
