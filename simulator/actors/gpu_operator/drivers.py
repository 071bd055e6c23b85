"""NVIDIADriver objects become driver DaemonSets, one for each OS tag of the nodes they own."""

from collections import defaultdict

from simulator.actors.gpu_operator import claims, conditions, keys
from simulator.actors.gpu_operator.active import has_driver_objects
from simulator.actors.gpu_operator.applying import apply_set, is_rolled_out
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.gpu_operator.release import Release
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.gpu_operator.template import app_name, daemon_set
from simulator.actors.kubelet.host import host_of
from simulator.actors.objects import Obj, by_age, generation, labels, name, status, uid
from simulator.actors.world import World
from simulator.kinds import DAEMON_SET, NODE

WAITING = "Waiting for driver pod to be ready"


class Drivers:
    def __init__(self, world: World, release: Release) -> None:
        self._world = world
        self._release = release
        world[NVIDIA_DRIVER].on_change(self._driver_changed)
        world[CLUSTER_POLICY].on_change(lambda _was, _is: world.loop.soon(self.reconcile))
        world[DAEMON_SET].on_change(self._set_changed)
        world[NODE].on_change(self._node_changed)

    def reconcile(self) -> None:
        drivers = by_age(self._world[NVIDIA_DRIVER].all())
        if not has_driver_objects(self._world):
            for driver in drivers:
                self._write(driver, conditions.disabled())
            return
        nodes = [node for node in self._world[NODE].all() if labels(node).get(keys.PRESENT) == "true"]
        clashing = claims.in_conflict(nodes, drivers)
        if not clashing and self._release.is_26_7:
            self._assign(nodes, drivers)
        for driver in drivers:
            self._reconcile_one(driver, nodes, is_clashing=name(driver) in clashing)

    def _reconcile_one(self, driver: Obj, nodes: list[Obj], *, is_clashing: bool) -> None:
        now = self._world.loop.clock.now()
        if is_clashing:
            words = f"conflicting NVIDIADriver NodeSelectors found for resource: {name(driver)}"
            self._write(driver, conditions.not_ready(driver, "ConflictingNodeSelector", words, now))
            return
        sets = self._apply(driver, self._os_tags(driver, nodes))
        if all(is_rolled_out(each) for each in sets) and not self._is_upgrading(driver, nodes):
            words = "All resources have been successfully reconciled"
            self._write(driver, conditions.ready(driver, words, now))
            return
        self._write(driver, conditions.not_ready(driver, "DriverNotReady", WAITING, now))

    def _assign(self, nodes: list[Obj], drivers: list[Obj]) -> None:
        for node in nodes:
            owner = claims.owner_of(node, drivers)
            if labels(node).get(keys.OWNER, "") != owner:
                self._world.patch(NODE, node, {"metadata": {"labels": {keys.OWNER: owner or None}}})

    def _owned(self, driver: Obj, nodes: list[Obj]) -> list[Obj]:
        if not self._release.is_26_7:
            return [node for node in nodes if claims.claims(driver, node)]
        named = (self._world[NODE].get(name(node)) or node for node in nodes)
        return [node for node in named if labels(node).get(keys.OWNER) == name(driver)]

    def _os_tags(self, driver: Obj, nodes: list[Obj]) -> list[str]:
        pools: dict[str, int] = defaultdict(int)
        for node in self._owned(driver, nodes):
            pools[host_of(node).os_tag] += 1
        return sorted(pools)

    def _apply(self, driver: Obj, os_tags: list[str]) -> list[Obj]:
        """Create what is missing, replace the template of what differs, delete the sets of pools that are gone."""
        wanted = [daemon_set(driver, os_tag, has_owner_label=self._release.is_26_7) for os_tag in os_tags]
        kept = {app_name(driver, os_tag) for os_tag in os_tags}
        for stale in self._world[DAEMON_SET].by("controller", uid(driver)):
            if name(stale) not in kept:
                self._world.delete(DAEMON_SET, stale)
        return [apply_set(self._world, each) for each in wanted]

    def _is_upgrading(self, driver: Obj, nodes: list[Obj]) -> bool:
        """Until 26.7 `ready` may be said in the middle of a rollout."""
        if not self._release.is_26_7:
            return False
        settled = (UpgradeState.UNKNOWN, UpgradeState.DONE)
        return any(
            labels(node).get(keys.STATE, "") not in settled and labels(node).get(keys.SKIP) != "true"
            for node in self._owned(driver, nodes)
        )

    def _write(self, obj: Obj, wanted: Obj) -> None:
        if any(status(obj).get(part) != value for part, value in wanted.items()):
            self._world.patch_status(NVIDIA_DRIVER, obj, wanted)

    def _driver_changed(self, was: Obj | None, driver: Obj | None) -> None:
        if was is None or driver is None or generation(was) != generation(driver):
            self._world.loop.soon(self.reconcile)

    def _set_changed(self, was: Obj | None, driver_set: Obj | None) -> None:
        seen = driver_set or was
        if seen and labels(seen).get(keys.COMPONENT) == keys.DRIVER_COMPONENT:
            self._world.loop.soon(self.reconcile)

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if was is None or node is None or labels(was) != labels(node):
            self._world.loop.soon(self.reconcile)
