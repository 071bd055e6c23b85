"""ClusterPolicy's status: are all operands available, and, from 26.7, is no driver upgrade under way?"""

from simulator.actors.gpu_operator import conditions, keys
from simulator.actors.gpu_operator.active import active_policy
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.gpu_operator.release import Release
from simulator.actors.objects import Obj, name, status, uid
from simulator.actors.world import World
from simulator.kinds import DAEMON_SET


class ClusterPolicies:
    def __init__(self, world: World, release: Release) -> None:
        self._world = world
        self._release = release
        for kind in (CLUSTER_POLICY, DAEMON_SET, NVIDIA_DRIVER):
            world[kind].on_change(lambda _was, _is: world.loop.soon(self.reconcile))

    def reconcile(self) -> None:
        active = active_policy(self._world)
        for policy in list(self._world[CLUSTER_POLICY].all()):
            wanted = self._judge(policy) if policy is active else {"state": "ignored"}
            wanted |= {"namespace": keys.NAMESPACE}
            if any(status(policy).get(part) != value for part, value in wanted.items()):
                self._world.patch_status(CLUSTER_POLICY, policy, wanted)

    def _judge(self, policy: Obj) -> Obj:
        now = self._world.loop.clock.now()
        unready = sorted(name(each) for each in self._operands(policy) if not _is_available(each))
        if unready:
            words = f"ClusterPolicy is not ready, states not ready: [{' '.join(unready)}]"
            return conditions.not_ready(policy, "OperandNotReady", words, now)
        if self._release.is_26_7 and self._is_driver_moving():
            return conditions.not_ready(policy, "DriverNotReady", "NVIDIADriver upgrade is in progress", now)
        return conditions.ready(
            policy, "ClusterPolicy is ready as all resources have been successfully reconciled", now
        )

    def _operands(self, policy: Obj) -> list[Obj]:
        return self._world[DAEMON_SET].by("controller", uid(policy))

    def _is_driver_moving(self) -> bool:
        return any(status(driver).get("state") == "notReady" for driver in self._world[NVIDIA_DRIVER].all())


def _is_available(operand: Obj) -> bool:
    counted = status(operand)
    return bool(counted.get("numberAvailable", 0) >= counted.get("desiredNumberScheduled", 0))
