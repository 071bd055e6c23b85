"""GPU Feature Discovery: writes its labels while it runs, and takes them away when it goes."""

from simulator.actors import apps
from simulator.actors.durations import Durations
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.actors.gpu_operator.node.gfd_labels import (
    DRIVER_LABELS,
    GPU_LABELS,
    TIMESTAMP,
    driver_labels,
    gpu_labels,
)
from simulator.actors.kubelet.host import MIG_STATE, Host
from simulator.actors.objects import Obj, is_true, labels, name, node_of, spec
from simulator.actors.sharing import CONFIG_LABEL
from simulator.actors.skus import SKUS
from simulator.actors.world import World
from simulator.faults import Board, LostGpus, StaleLabels
from simulator.kinds import NODE, POD

CAUSES = (CONFIG_LABEL, MIG_STATE)


class FeatureDiscovery:
    def __init__(self, world: World, hosts: dict[str, Host], durations: Durations, faults: Board) -> None:
        self._world = world
        self._hosts = hosts
        self._durations = durations
        self._faults = faults
        self._struck: set[str] = set()
        world[POD].on_change(self._pod_changed)
        world[NODE].on_change(self._node_changed)
        faults.on_change(lambda: world.loop.post(self._strike))
        world.loop.soon(self._strike)

    def sync(self, node_name: str) -> None:
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is None or host is None or self._is_stale(node_name):
            return
        found = self._wanted(host) if self._is_running(node_name) else {}
        patch = {key: None for key in self._own(node) if key not in found} | found
        if patch:
            self._world.patch(NODE, node, {"metadata": {"labels": patch}})

    def _is_stale(self, node_name: str) -> bool:
        return any(fault.node == node_name for fault in self._faults.active(StaleLabels))

    def _own(self, node: Obj) -> set[str]:
        """What goes with the GFD pod: every label it wrote.

        A fleet whose NVIDIADrivers select by one of them must have those labels from a second source, or its nodes
        would leave their driver in the middle of an upgrade: there, only what GFD says of the driver goes.
        """
        gone = DRIVER_LABELS if self._is_selected_by() else (*DRIVER_LABELS, *GPU_LABELS)
        return {key for key in labels(node) if key.startswith(gone)}

    def _is_selected_by(self) -> bool:
        selectors = (spec(driver).get("nodeSelector") or {} for driver in self._world[NVIDIA_DRIVER].all())
        return any(key.startswith(GPU_LABELS) for selector in selectors for key in selector)

    def _wanted(self, host: Host) -> dict[str, str]:
        sku = SKUS.get(host.model)
        at = str(int(self._world.loop.clock.now().timestamp()))
        cut = host.layout[self._lost(host) :]
        found = gpu_labels(sku, cut, host.plugin, clique=host.clique) if sku and cut else {}
        return {**found, **driver_labels(host.driver), TIMESTAMP: at}

    def _lost(self, host: Host) -> int:
        """NVML counts a GPU that fell off until it is asked anew; one that was not there at boot it never knew."""
        faults = self._faults.active(LostGpus)
        return max((each.gpus for each in faults if each.node == host.name and each.is_since_boot), default=0)

    def _is_running(self, node_name: str) -> bool:
        pods = self._world[POD].by("node", node_name)
        return any(labels(pod).get("app") == apps.GFD and is_true(pod, "Ready") for pod in pods)

    def _strike(self) -> None:
        """Those that are struck, and those that were."""
        struck = {fault.node for fault in self._faults.active(LostGpus) if fault.is_since_boot}
        struck |= {fault.node for fault in self._faults.active(StaleLabels)}
        for node_name in struck | self._struck:
            self._world.loop.later(self._durations.gfd_labels, self.sync, node_name)
        self._struck = struck

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        if seen is None or labels(seen).get("app") != apps.GFD or not node_of(seen):
            return
        if pod is None or (was is not None and is_true(was, "Ready") != is_true(pod, "Ready")):
            self._world.loop.later(self._durations.gfd_labels, self.sync, node_of(seen))

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        """Another sharing, another cut: GFD reads both anew."""
        if was and node and any(labels(was).get(key) != labels(node).get(key) for key in CAUSES):
            self._world.loop.later(self._durations.gfd_labels, self.sync, name(node))
