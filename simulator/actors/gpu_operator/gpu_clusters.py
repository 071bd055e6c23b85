"""GPUCluster's status: are the operands of the DRA stack available? (new and experimental in 26.7)"""

from simulator.actors.gpu_operator import conditions, keys
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, GPU_CLUSTER
from simulator.actors.objects import Obj, name, status, uid
from simulator.actors.world import World
from simulator.kinds import DAEMON_SET

READY = "GPUCluster is ready as all resources have been successfully reconciled"
CLASH = "GPUCluster and ClusterPolicy cannot coexist"


class GpuClusters:
    def __init__(self, world: World) -> None:
        self._world = world
        for kind in (GPU_CLUSTER, CLUSTER_POLICY, DAEMON_SET):
            world[kind].on_change(lambda _was, _is: world.loop.soon(self.reconcile))

    def reconcile(self) -> None:
        for held in list(self._world[GPU_CLUSTER].all()):
            wanted = self._judge(held) | {"namespace": keys.NAMESPACE}
            if any(status(held).get(part) != value for part, value in wanted.items()):
                self._world.patch_status(GPU_CLUSTER, held, wanted)

    def _judge(self, held: Obj) -> Obj:
        now = self._world.loop.clock.now()
        if self._world[CLUSTER_POLICY].objects:
            return conditions.not_ready(held, "ReconcileFailed", CLASH, now)
        sets = self._world[DAEMON_SET].by("controller", uid(held))
        unready = sorted(name(each) for each in sets if not _is_available(each))
        if unready:
            words = f"GPUCluster is not ready, states not ready: [{' '.join(unready)}]"
            return conditions.not_ready(held, "OperandNotReady", words, now)
        return conditions.ready(held, READY, now)


def _is_available(operand: Obj) -> bool:
    counted = status(operand)
    return bool(counted.get("numberAvailable", 0) >= counted.get("desiredNumberScheduled", 0))
