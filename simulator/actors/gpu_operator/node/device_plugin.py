"""What the node offers: allocatable follows the device plugin at once, capacity is forgotten five minutes later."""

from simulator.actors.durations import Durations
from simulator.actors.gpu_operator.node import apps
from simulator.actors.kubelet.host import Host
from simulator.actors.loop import Timer
from simulator.actors.objects import Obj, is_true, labels, node_of, status
from simulator.actors.quantities import amounts
from simulator.actors.world import World
from simulator.faults import BadDriver, Board
from simulator.faults.bad_driver import Harm
from simulator.kinds import NODE, POD

GPU = "nvidia.com/gpu"


class DevicePlugins:
    def __init__(self, world: World, hosts: dict[str, Host], durations: Durations, faults: Board) -> None:
        self._world = world
        self._hosts = hosts
        self._durations = durations
        self._faults = faults
        self._forgetting: dict[str, Timer] = {}
        world[POD].on_change(self._pod_changed)
        faults.on_change(lambda: world.loop.post(self.sync_all))

    def sync_all(self) -> None:
        for node_name in list(self._hosts):
            self.sync(node_name)

    def sync(self, node_name: str) -> None:
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is None or host is None or not host.gpus:
            return
        timer = self._forgetting.pop(node_name, None)
        if timer:
            timer.cancel()
        if self._is_running(node_name):
            self._write(node, capacity=host.gpus, allocatable=host.gpus - self._lost(host))
            return
        self._write(node, capacity=None, allocatable=0)
        self._forgetting[node_name] = self._world.loop.later(
            self._durations.capacity_forgotten, self._forget, node_name
        )

    def _forget(self, node_name: str) -> None:
        node = self._world[NODE].get(node_name)
        if node is not None and not self._is_running(node_name):
            self._write(node, capacity=0, allocatable=0)

    def _is_running(self, node_name: str) -> bool:
        pods = self._world[POD].by("node", node_name)
        return any(labels(pod).get("app") == apps.DEVICE_PLUGIN and is_true(pod, "Ready") for pod in pods)

    def _lost(self, host: Host) -> int:
        lost = [
            fault.gpus
            for fault in self._faults.active(BadDriver)
            if fault.how is Harm.GPUS_LOST and fault.strikes(driver=host.driver, kernel=host.kernel)
        ]
        return min(host.gpus, max(lost, default=0))

    def _write(self, node: Obj, *, capacity: int | None, allocatable: int) -> None:
        """None leaves the capacity as it is."""
        wanted = {"allocatable": {GPU: str(allocatable)}}
        if capacity is not None:
            wanted["capacity"] = {GPU: str(capacity)}
        has = status(node)
        if any(amounts(has.get(part))[GPU] != int(value[GPU]) for part, value in wanted.items()):
            self._world.patch_status(NODE, node, wanted)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        if seen is None or labels(seen).get("app") != apps.DEVICE_PLUGIN or not node_of(seen):
            return
        if was is None or pod is None or is_true(was, "Ready") != is_true(pod, "Ready"):
            self._world.loop.soon(self.sync, node_of(seen))
