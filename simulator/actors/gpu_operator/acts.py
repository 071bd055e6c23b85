"""What the upgrade controller does to a cluster, each with the Event it leaves on the node."""

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, annotations, is_unschedulable, labels
from simulator.actors.world import World
from simulator.kinds import NODE, POD


class Acts:
    def __init__(self, world: World) -> None:
        self.world = world

    def move(self, node: Obj, state: UpgradeState) -> None:
        patch = {"metadata": {"labels": {keys.STATE: str(state)}}}
        self.world.patch(NODE, node, patch, how="strategic")
        self.tell(node, f"Successfully updated node state label to {state}")

    def annotate(self, node: Obj, key: str, value: str | None) -> None:
        """None takes it away; the Event then says `null`, as the operator's does."""
        if value is None and key not in annotations(node):
            return
        self.world.patch(NODE, node, {"metadata": {"annotations": {key: value}}})
        self.tell(node, f"Successfully updated node annotation to {key}={value or 'null'}")

    def cordon(self, node: Obj) -> None:
        if not is_unschedulable(node):
            self.world.patch(NODE, node, {"spec": {"unschedulable": True}}, manager=keys.MANAGER)

    def uncordon(self, node: Obj) -> None:
        if is_unschedulable(node):
            self.world.patch(NODE, node, {"spec": {"unschedulable": None}})

    def restart(self, driver_pod: Obj) -> None:
        self.world.delete(POD, driver_pod)

    def forget_state(self, node: Obj) -> None:
        if keys.STATE in labels(node):
            self.world.patch(NODE, node, {"metadata": {"labels": {keys.STATE: None}}})

    def leave(self, node: Obj) -> None:
        """Past validation: uncordon, or, where somebody had cordoned before, leave it so."""
        if keys.WAS_CORDONED not in annotations(node):
            self.move(node, UpgradeState.UNCORDON)
            return
        self.move(node, UpgradeState.DONE)
        self.annotate(node, keys.WAS_CORDONED, None)

    def tell(self, node: Obj, words: str) -> None:
        self.world.events.normal(node, "Node", keys.REASON, words, source=keys.SOURCE)

    def warn(self, node: Obj, words: str) -> None:
        self.world.events.warning(node, "Node", keys.REASON, words, source=keys.SOURCE)

    def unix(self) -> int:
        return int(self.world.loop.clock.now().timestamp())

    def has_passed(self, since_unix: str, cluster_s: float) -> bool:
        """Timestamps are the wall's, timeouts the cluster's."""
        return self.unix() > int(since_unix) + self.world.loop.clock.wall_s(cluster_s)
