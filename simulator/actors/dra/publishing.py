"""ResourceSlices follow the DRA driver's pod on a node; half a minute after it has gone the kubelet wipes them."""

from simulator.actors import apps
from simulator.actors.dra.api import Api
from simulator.actors.dra.slices import resource_slice
from simulator.actors.durations import Durations
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.missing import fallen, missing_since_boot
from simulator.actors.objects import Obj, is_true, labels, node_of, spec
from simulator.actors.world import World
from simulator.faults import Board
from simulator.kinds import NODE, POD

DRA_APPS = (apps.DRA, apps.DRA_CHART)


class Publishing:
    def __init__(self, world: World, hosts: dict[str, Host], durations: Durations, faults: Board, api: Api) -> None:
        self._world = world
        self._hosts = hosts
        self._durations = durations
        self._faults = faults
        self._api = api
        world[api.slice].index("nodeName", lambda obj: spec(obj).get("nodeName", ""))
        world[POD].on_change(self._pod_changed)
        faults.on_change(lambda: world.loop.post(self.sync_all))

    def sync_all(self) -> None:
        for held in list(self._world[self._api.slice].all()):
            self.sync(spec(held).get("nodeName", ""))

    def sync(self, node_name: str) -> None:
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is None or host is None or not host.gpus or not host.driver:
            return
        if not self._is_running(node_name):
            self._world.loop.later(self._durations.slices_wiped, self._wipe, node_name)
            return
        held = next(iter(self._world[self._api.slice].by("nodeName", node_name)), None)
        generation = spec(held)["pool"]["generation"] if held else 1
        gone = fallen(self._faults, host).union(missing_since_boot(self._faults, host))
        gpus = [gpu for gpu in range(host.gpus) if gpu not in gone]
        wanted = resource_slice(self._api, node, host, gpus=gpus, generation=generation)
        if held is None:
            self._world.create(self._api.slice, wanted)
        elif spec(held) != wanted["spec"]:
            wanted["spec"]["pool"]["generation"] += 1
            self._world.patch(self._api.slice, held, {"spec": wanted["spec"]})

    def _wipe(self, node_name: str) -> None:
        if self._is_running(node_name):
            return
        for held in self._world[self._api.slice].by("nodeName", node_name):
            self._world.delete(self._api.slice, held)

    def _is_running(self, node_name: str) -> bool:
        pods = self._world[POD].by("node", node_name)
        return any(labels(pod).get("app") in DRA_APPS and is_true(pod, "Ready") for pod in pods)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        if seen is None or labels(seen).get("app") not in DRA_APPS or not node_of(seen):
            return
        if was is None or pod is None or is_true(was, "Ready") != is_true(pod, "Ready"):
            self._world.loop.soon(self.sync, node_of(seen))
