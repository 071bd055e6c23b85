"""`allocatedResourcesStatus` of containers (KEP-4680, gate ResourceHealthStatus): which devices, and how they are."""

from simulator.actors.kubelet.devices import Device, Holdings
from simulator.actors.objects import Obj, is_true, node_of, status, uid
from simulator.actors.world import World
from simulator.faults import Board, LostGpus
from simulator.kinds import POD
from simulator.quantities import container_requests, wants_gpu


class ResourceHealth:
    def __init__(self, world: World, holdings: Holdings, faults: Board) -> None:
        self._world = world
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
        lost = self._lost(node_of(pod))
        told = []
        for container, held in zip(pod["spec"]["containers"], report["containerStatuses"], strict=True):
            given = _take(left, container)
            told.append({**held, "allocatedResourcesStatus": _written(given, lost)} if given else held)
        return {**report, "containerStatuses": told}

    def _lost(self, node_name: str) -> int:
        """The first so many GPUs of the machine are gone."""
        return max((fault.gpus for fault in self._faults.active(LostGpus) if fault.node == node_name), default=0)


def _take(left: list[Device], container: Obj) -> list[Device]:
    given: list[Device] = []
    for resource, count in container_requests(container).items():
        mine = [device for device in left if device.resource == resource][:count]
        given += mine
        for device in mine:
            left.remove(device)
    return given


def _written(given: list[Device], lost: int) -> list[Obj]:
    by_resource: dict[str, list[Obj]] = {}
    for device in given:
        health = "Unhealthy" if device.gpu < lost else "Healthy"
        by_resource.setdefault(device.resource, []).append({"resourceID": device.id, "health": health})
    return [{"name": resource, "resources": resources} for resource, resources in by_resource.items()]
