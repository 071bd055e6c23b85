"""Which of the operator's own objects count, and who runs the driver because of them."""

from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, GPU_CLUSTER
from simulator.actors.objects import Obj, by_age, spec
from simulator.actors.world import World


def active_policy(world: World) -> Obj | None:
    """The oldest ClusterPolicy; others are ignored."""
    return next(iter(by_age(world[CLUSTER_POLICY].all())), None)


def active_gpu_cluster(world: World) -> Obj | None:
    """The singleton; None in a cluster whose actors were not told to look for one."""
    cache = world.caches.get(GPU_CLUSTER)
    return next(iter(by_age(cache.all())), None) if cache else None


def uses_driver_crd(policy: Obj | None) -> bool:
    return policy is not None and bool((spec(policy).get("driver") or {}).get("useNvidiaDriverCRD"))


def has_driver_objects(world: World) -> bool:
    """Do NVIDIADrivers run the driver? With a GPUCluster nobody else does."""
    return active_gpu_cluster(world) is not None or uses_driver_crd(active_policy(world))
