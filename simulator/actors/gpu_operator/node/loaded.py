"""Which driver a machine runs, for actors that come to a cluster that is up already."""

from simulator.actors.gpu_operator.keys import COMPONENT, DRIVER_COMPONENT
from simulator.actors.gpu_operator.template import digest_of, version_of
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, is_true, labels, name, node_of
from simulator.actors.world import World
from simulator.kinds import NODE, POD


class LoadedDrivers:
    """A ready driver pod has loaded what its template says."""

    def __init__(self, world: World, hosts: dict[str, Host]) -> None:
        self._world = world
        self._hosts = hosts
        world[POD].on_change(lambda _was, pod: self._read(pod) if pod else None)
        world[NODE].on_change(self._node_changed)

    def _read(self, pod: Obj) -> None:
        host = self._hosts.get(node_of(pod))
        if host is None or host.driver or labels(pod).get(COMPONENT) != DRIVER_COMPONENT or not is_true(pod, "Ready"):
            return
        host.load(version_of(pod["spec"]), digest_of(pod["spec"]))

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if was is None and node is not None:
            for pod in self._world[POD].by("node", name(node)):
                self._read(pod)
