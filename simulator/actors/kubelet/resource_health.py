"""`allocatedResourcesStatus` of containers (KEP-4680, gate ResourceHealthStatus): which devices, and how they are."""

from simulator.actors.kubelet.devices import Device, Holdings
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.missing import fallen, missing_since_boot
from simulator.actors.objects import Obj, is_true, node_of, status, uid
from simulator.actors.world import World
from simulator.faults import Board
from simulator.kinds import POD
from simulator.quantities import container_requests, wants_gpu


class ResourceHealth:
    def __init__(self, world: World, hosts: dict[str, Host], holdings: Holdings, faults: Board) -> None:
        self._world = world
        self._hosts = hosts
        self._holdings = holdings
        self._faults = faults
        faults.on_change(lambda: world.loop.post(self.sync_all))
        world.loop.soon(self.sync_all)

    def sync_all(self) -> None:
        """What runs already; what starts is dressed as it reports."""
        for pod in list(self._world[POD].all()):
            if is_true(pod, "Ready") and wants_gpu(pod):
                told = self.dress(pod, {"containerStatuses": status(pod)["containerStatuses"]})
                if told["containerStatuses"] != status(pod)["containerStatuses"]:
                    self._world.patch_status(POD, pod, told)

    def dress(self, pod: Obj, report: Obj) -> Obj:
        """The report with each container's devices."""
        left = list(self._holdings.on(node_of(pod)).get(uid(pod), ())) if wants_gpu(pod) else []
        if not left:
            return report
        host = self._hosts.get(node_of(pod))
        lost = _gone(self._faults, host) if host else frozenset()
        told = []
        for container, held in zip(pod["spec"]["containers"], report["containerStatuses"], strict=True):
            given = _take(left, container)
            told.append({**held, "allocatedResourcesStatus": _written(given, lost)} if given else held)
        return {**report, "containerStatuses": told}


def _take(left: list[Device], container: Obj) -> list[Device]:
    given: list[Device] = []
    for resource, count in container_requests(container).items():
        mine = [device for device in left if device.resource == resource][:count]
        given += mine
        for device in mine:
            left.remove(device)
    return given


def _gone(faults: Board, host: Host) -> frozenset[int]:
    return fallen(faults, host).union(missing_since_boot(faults, host))


def _written(given: list[Device], lost: frozenset[int]) -> list[Obj]:
    by_resource: dict[str, list[Obj]] = {}
    for device in given:
        health = "Unhealthy" if device.gpu in lost else "Healthy"
        by_resource.setdefault(device.resource, []).append({"resourceID": device.id, "health": health})
    return [{"name": resource, "resources": resources} for resource, resources in by_resource.items()]
