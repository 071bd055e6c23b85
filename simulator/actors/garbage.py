"""What nobody owns any more goes: dependants of deleted owners, and pods of deleted nodes."""

from simulator.actors.objects import Obj, is_terminating, name, node_of, owners, uid
from simulator.actors.world import World
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, JOB, NODE, POD, REPLICA_SET, Kind

DEPENDANTS: tuple[Kind, ...] = (POD, CONTROLLER_REVISION, DAEMON_SET, REPLICA_SET, JOB)


class Garbage:
    def __init__(self, world: World, owner_kinds: tuple[Kind, ...]) -> None:
        self._world = world
        for kind in DEPENDANTS:
            world[kind].index("owner", _first_owner)
        for kind in owner_kinds:
            world[kind].on_change(self._owner_changed)
        world[NODE].on_change(self._node_changed)

    def collect(self, owner_uid: str) -> None:
        for kind in DEPENDANTS:
            for dependant in self._world[kind].by("owner", owner_uid):
                if not is_terminating(dependant):
                    self._world.delete(kind, dependant)

    def collect_pods_of(self, node_name: str) -> None:
        """A pod whose node is gone has no kubelet to confirm its end."""
        if self._world[NODE].get(node_name) is not None:
            return
        for pod in self._world[POD].by("node", node_name):
            if node_of(pod) == node_name:
                self._world.delete(POD, pod, grace_s=0)

    def _owner_changed(self, was: Obj | None, owner: Obj | None) -> None:
        if owner is None and was is not None:
            self._world.loop.soon(self.collect, uid(was))

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if node is None and was is not None:
            self._world.loop.soon(self.collect_pods_of, name(was))


def _first_owner(obj: Obj) -> str:
    return owners(obj)[0]["uid"] if owners(obj) else ""
