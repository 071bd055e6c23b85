"""The upgrade controller: one worker, woken by its own labels, by DaemonSets and policies, else every two minutes."""

import logging
from typing import Any

from simulator.actors import fits
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.active import active_gpu_cluster, active_policy, uses_driver_crd
from simulator.actors.gpu_operator.acts import Acts
from simulator.actors.gpu_operator.evictions import Evictions
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.gpu_operator.passes import PASSES
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy, read_policy
from simulator.actors.gpu_operator.release import Release
from simulator.actors.gpu_operator.snapshot import Snapshot, UnscheduledPods, take_snapshot
from simulator.actors.loop import Timer
from simulator.actors.objects import Obj, generation, labels, name, namespace, spec
from simulator.actors.world import World
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD

log = logging.getLogger(__name__)

PERIOD_S = 120
CACHE_S = 0.5
RETRY_S = (0.1, 30.0)  # the first and the longest delay after an error


class Upgrades:
    def __init__(self, world: World, release: Release) -> None:
        self._world = world
        self._release = release
        self._hands = Hands(world, Acts(world), Evictions(world), is_26_7=release.is_26_7)
        self._timer: Timer | None = None
        self._retry_s = RETRY_S[0]
        for kind in (DAEMON_SET, POD):
            world[kind].index("component", lambda obj: labels(obj).get(keys.COMPONENT))
        world[CONTROLLER_REVISION].index("namespace", namespace)
        world[NODE].on_change(self._node_changed)
        world[DAEMON_SET].on_change(self._set_changed)
        for kind in (CLUSTER_POLICY, NVIDIA_DRIVER):
            world[kind].on_change(self._policy_changed)

    def tick(self) -> None:
        self._timer = None
        self.reconcile()

    def reconcile(self) -> None:
        try:
            self._reconcile()
        except UnscheduledPods as error:
            log.info("no upgrade goes on: %s", error)
            self._world.loop.later(self._retry_s, self.reconcile)
            self._retry_s = min(self._retry_s * 2, RETRY_S[1])
            return
        self._retry_s = RETRY_S[0]
        if self._timer is None:
            self._timer = self._world.loop.later(PERIOD_S, self.tick)

    def _reconcile(self) -> None:
        policy = active_policy(self._world)
        if active_gpu_cluster(self._world) is not None:
            self._for_each_driver()
            return
        if policy is None:
            return
        if (spec(policy).get("sandboxWorkloads") or {}).get("enabled"):
            self._forget(list(self._world[NODE].all()))
        elif self._release.is_26_7 and uses_driver_crd(policy):
            self._for_each_driver()
        else:
            self._for_all(read_policy((spec(policy).get("driver") or {}).get("upgradePolicy")))

    def _for_each_driver(self) -> None:
        """26.7: one snapshot of the cluster, so one bad DaemonSet still stops every pool; then a policy for each."""
        policies = {name(driver): _policy_of(driver) for driver in self._world[NVIDIA_DRIVER].all()}
        if not any(policy.is_auto for policy in policies.values()):
            self._forget(list(self._world[NODE].all()))
            return
        snapshot = take_snapshot(self._world)
        self._forget_stale(snapshot)
        by_owner = snapshot.by_owner()
        for owner, policy in policies.items():
            if not policy.is_auto:
                self._forget([node for node in self._world[NODE].all() if labels(node).get(keys.OWNER) == owner])
            elif owner in by_owner:
                self._apply(by_owner[owner], policy)

    def _for_all(self, policy: Policy) -> None:
        """Up to 26.3: one policy, counted over all driver nodes together."""
        if not policy.is_auto:
            self._forget(list(self._world[NODE].all()))
            return
        self._apply(take_snapshot(self._world), policy)

    def _apply(self, snapshot: Snapshot, policy: Policy) -> None:
        for run in PASSES:
            run(self._hands, snapshot, policy)

    def _forget(self, nodes: list[Obj]) -> None:
        for node in nodes:
            self._hands.acts.forget_state(node)

    def _forget_stale(self, snapshot: Snapshot) -> None:
        """Nodes that no driver DaemonSet selects any more."""
        kept = {name(seen.node) for seen in snapshot.all()}
        sets = self._world[DAEMON_SET].by("component", keys.DRIVER_COMPONENT)
        for node in [each for each in self._world[NODE].all() if keys.STATE in labels(each)]:
            selected = any(fits.selects(each["spec"]["template"]["spec"], node) for each in sets)
            if name(node) not in kept and not selected:
                self._hands.acts.forget_state(node)

    def _soon(self) -> None:
        self._world.loop.soon(self.reconcile)

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if was is None or node is None or _lever(was) != _lever(node):
            self._soon()

    def _set_changed(self, was: Obj | None, driver_set: Obj | None) -> None:
        seen = driver_set or was
        is_driver = seen is not None and labels(seen).get(keys.COMPONENT) == keys.DRIVER_COMPONENT
        if is_driver and (was is None or driver_set is None or generation(was) != generation(driver_set)):
            # The operator's cache hears of it a moment later than the controller that writes the new revision.
            self._world.loop.later(CACHE_S, self.reconcile)

    def _policy_changed(self, was: Obj | None, policy: Obj | None) -> None:
        if was is None or policy is None or generation(was) != generation(policy):
            self._soon()


def _policy_of(driver: Obj) -> Policy:
    """GetUpgradePolicyWithDefaults: an NVIDIADriver without a policy upgrades by itself, one node at a time."""
    given: dict[str, Any] = spec(driver).get("upgradePolicy") or {}
    return read_policy({"autoUpgrade": True, **given})


def _lever(node: Obj) -> tuple[str | None, str | None]:
    return (labels(node).get(keys.STATE), labels(node).get(keys.SKIP))
