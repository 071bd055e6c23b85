"""GPU Feature Discovery: the labels of a node's GPUs, and of the driver that runs them."""

from simulator.actors.durations import Durations
from simulator.actors.gpu_operator.node import apps
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, is_true, labels, node_of
from simulator.actors.skus import SKUS, Sku
from simulator.actors.world import World
from simulator.kinds import NODE, POD

# Of the CUDA that each driver branch brings.
CUDA_OF_BRANCH = {"535": "12.2", "550": "12.4", "570": "12.8", "580": "13.0", "590": "13.1", "595": "13.2"}


def driver_labels(version: str) -> dict[str, str]:
    major, minor, revision = ([*version.split("."), "", ""])[:3]
    cuda = CUDA_OF_BRANCH.get(major, "13.0")
    cuda_major, _, cuda_minor = cuda.partition(".")
    return {
        "nvidia.com/cuda.driver-version.full": version,
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.driver.major": major,
        "nvidia.com/cuda.driver.minor": minor,
        "nvidia.com/cuda.driver.rev": revision,
        "nvidia.com/cuda.runtime-version.full": cuda,
        "nvidia.com/cuda.runtime-version.major": cuda_major,
        "nvidia.com/cuda.runtime-version.minor": cuda_minor,
        "nvidia.com/cuda.runtime.major": cuda_major,
        "nvidia.com/cuda.runtime.minor": cuda_minor,
    }


def gpu_labels(sku: Sku, gpus: int) -> dict[str, str]:
    return {
        "nvidia.com/gpu.product": sku.product,
        "nvidia.com/gpu.family": sku.family,
        "nvidia.com/gpu.memory": str(sku.memory_mib),
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.machine": sku.machine,
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/gpu.compute.major": str(sku.compute[0]),
        "nvidia.com/gpu.compute.minor": str(sku.compute[1]),
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/mps.capable": "false",
        "nvidia.com/vgpu.present": "false",
    }


def vanishing(node: Obj) -> dict[str, None]:
    """What goes with the GFD pod.

    In life all of its labels go, `gpu.product` too. A fleet whose NVIDIADrivers select by product, as these do, must
    have that label from a second source, or its nodes would leave their driver in the middle of an upgrade.
    """
    gone = ("nvidia.com/cuda.", "nvidia.com/gfd.timestamp")
    return {key: None for key in labels(node) if key.startswith(gone)}


class FeatureDiscovery:
    def __init__(self, world: World, hosts: dict[str, Host], durations: Durations) -> None:
        self._world = world
        self._hosts = hosts
        self._durations = durations
        world[POD].on_change(self._pod_changed)

    def sync(self, node_name: str) -> None:
        node, host = self._world[NODE].get(node_name), self._hosts.get(node_name)
        if node is None or host is None:
            return
        wanted = self._wanted(host) if self._is_running(node_name) else vanishing(node)
        if wanted:
            self._world.patch(NODE, node, {"metadata": {"labels": wanted}})

    def _wanted(self, host: Host) -> dict[str, str]:
        sku = SKUS.get(host.model)
        at = str(int(self._world.loop.clock.now().timestamp()))
        found = gpu_labels(sku, host.gpus) if sku else {}
        return {**found, **driver_labels(host.driver), "nvidia.com/gfd.timestamp": at}

    def _is_running(self, node_name: str) -> bool:
        pods = self._world[POD].by("node", node_name)
        return any(labels(pod).get("app") == apps.GFD and is_true(pod, "Ready") for pod in pods)

    def _pod_changed(self, was: Obj | None, pod: Obj | None) -> None:
        seen = pod or was
        if seen is None or labels(seen).get("app") != apps.GFD or not node_of(seen):
            return
        if pod is None or (was is not None and is_true(was, "Ready") != is_true(pod, "Ready")):
            self._world.loop.later(self._durations.gfd_labels, self.sync, node_of(seen))
