"""What the node offers: allocatable follows the device plugin at once, capacity is forgotten five minutes later."""

from simulator.actors import apps
from simulator.actors.durations import Durations
from simulator.actors.gpu_operator.node.offers import offered
from simulator.actors.kubelet.host import Host
from simulator.actors.kubelet.missing import fallen, missing_since_boot
from simulator.actors.loop import Timer
from simulator.actors.objects import Obj, is_true, labels, name, node_of, status
from simulator.actors.sharing import CONFIG_LABEL, config_of
from simulator.actors.world import World
from simulator.faults import BadDriver, Board
from simulator.faults.bad_driver import Harm
from simulator.kinds import NODE, POD

Offer = dict[str, int]
PLUGIN_APPS = (apps.DEVICE_PLUGIN, apps.MPS)
PREFIX = "nvidia.com/"


class DevicePlugins:
    def __init__(self, world: World, hosts: dict[str, Host], durations: Durations, faults: Board) -> None:
        self._world = world
        self._hosts = hosts
        self._durations = durations
        self._faults = faults
        self._forgetting: dict[str, Timer] = {}
        world[POD].on_change(self._pod_changed)
        world[NODE].on_change(self._node_changed)
        faults.on_change(lambda: world.loop.post(self.sync_all))

    def sync_all(self) -> None:
        for node_name in list(self._hosts):
            self.sync(node_name)

    def sync(self, node_name: str) -> None:
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is None or host is None or not host.gpus or self._is_elsewhere(node):
            return
        timer = self._forgetting.pop(node_name, None)
        if timer:
            timer.cancel()
        capacity, allocatable = self._offers(host) if self._is_running(node_name) else ({}, {})
        gone = dict.fromkeys(_known(node) - allocatable.keys(), 0)
        self._write(node, capacity=capacity, allocatable=allocatable | gone)
        if any(_count(node, "capacity", resource) for resource in gone):
            forget_s = self._durations.capacity_forgotten
            self._forgetting[node_name] = self._world.loop.later(forget_s, self._forget, node_name)

    def _forget(self, node_name: str) -> None:
        """Named with a count of zero from then on: the kubelet does not take a resource away that it has known."""
        self._forgetting.pop(node_name, None)
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is not None and host is not None:
            capacity, _ = self._offers(host) if self._is_running(node_name) else ({}, {})
            self._write(node, capacity=dict.fromkeys(_known(node) - capacity.keys(), 0), allocatable={})

    def _offers(self, host: Host) -> tuple[Offer, Offer]:
        """Capacity and allocatable."""
        seen = [gpu for gpu in range(host.gpus) if gpu not in missing_since_boot(self._faults, host)]
        gone = fallen(self._faults, host).union(seen[: self._driven_off(host)])
        capacity = offered(tuple(host.layout[gpu] for gpu in seen), host.plugin)
        healthy = tuple(host.layout[gpu] for gpu in seen if gpu not in gone)
        return capacity, dict.fromkeys(capacity, 0) | offered(healthy, host.plugin)

    def _is_elsewhere(self, node: Obj) -> bool:
        """Its GPUs are offered another way, by DRA: there is no plugin, and never was."""
        return labels(node).get(apps.GATES[apps.DEVICE_PLUGIN]) == "false" and not _known(node)

    def _is_running(self, node_name: str) -> bool:
        """MPS is offered only while its daemon runs, too."""
        host = self._hosts[node_name]
        wanted = PLUGIN_APPS if host.plugin.needs_daemon else PLUGIN_APPS[:1]
        pods = self._world[POD].by("node", node_name)
        ready = {labels(pod).get("app") for pod in pods if is_true(pod, "Ready")}
        return ready.issuperset(wanted)

    def _driven_off(self, host: Host) -> int:
        """How many GPUs a bad driver loses."""
        lost = (
            fault.gpus
            for fault in self._faults.active(BadDriver)
            if fault.how is Harm.GPUS_LOST and fault.strikes(driver=host.driver, kernel=host.kernel, node=host.name)
        )
        return max(lost, default=0)

    def _write(self, node: Obj, *, capacity: Offer, allocatable: Offer) -> None:
        """What is not named stays as it is."""
        wanted = {
            part: {resource: str(count) for resource, count in offer.items() if not _says(node, part, resource, count)}
            for part, offer in (("capacity", capacity), ("allocatable", allocatable))
        }
        changed = {part: values for part, values in wanted.items() if values}
        if changed:
            self._world.patch_status(NODE, node, changed)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        if seen is None or labels(seen).get("app") not in PLUGIN_APPS or not node_of(seen):
            return
        if was is None or pod is None or is_true(was, "Ready") != is_true(pod, "Ready"):
            self._world.loop.soon(self.sync, node_of(seen))

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        """The plugin's config manager restarts it when the node picks another configuration."""
        if was and node and labels(was).get(CONFIG_LABEL) != labels(node).get(CONFIG_LABEL):
            self._hosts[name(node)].plugin = config_of(labels(node))
            self._world.loop.later(self._durations.container_start, self.sync, name(node))


def _known(node: Obj) -> set[str]:
    return {key for key in status(node).get("allocatable") or {} if key.startswith(PREFIX)}


def _count(node: Obj, part: str, resource: str) -> int:
    return int((status(node).get(part) or {}).get(resource, 0))


def _says(node: Obj, part: str, resource: str, count: int) -> bool:
    held = (status(node).get(part) or {}).get(resource)
    return held == str(count)
