"""Which devices of a machine its pods were given: the kubelet's device manager, with the device plugin's ids."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, is_finished, node_of, uid
from simulator.actors.sharing import MigStrategy
from simulator.actors.uuids import gpu_uuid, mig_uuid
from simulator.actors.world import World
from simulator.kinds import POD
from simulator.quantities import is_gpu, requests

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/gpu.shared"


@dataclass(frozen=True, slots=True)
class Device:
    """`profile`: empty for a whole GPU. A shared GPU is one device under several ids."""

    id: str
    resource: str
    gpu: int
    place: int = 0
    profile: str = ""


@dataclass
class Devices:
    host: Host
    held: dict[str, tuple[Device, ...]] = field(default_factory=dict)  # by the uid of the pod

    def give(self, pod: Obj) -> None:
        """The first that are free; as few as there are, where a pod was bound by hand."""
        taken = {device.id for devices in self.held.values() for device in devices}
        given: list[Device] = []
        for resource, count in requests(pod).items():
            if is_gpu(resource):
                free = [device for device in all_devices(self.host, resource) if device.id not in taken]
                given += free[:count]
        if given:
            self.held[uid(pod)] = tuple(given)


class Holdings:
    """Looked up only when somebody asks, in whatever thread: what a pod was seen with it keeps, until it ends."""

    def __init__(self, world: World, hosts: dict[str, Host]) -> None:
        self._world = world
        self._hosts = hosts
        self._devices: dict[str, Devices] = {}
        self._lock = threading.Lock()

    def on(self, node_name: str) -> dict[str, tuple[Device, ...]]:
        """By the uid of the pod."""
        with self._lock:
            return self._on(node_name)

    def gpus_of(self, pod: Obj) -> frozenset[int]:
        """The GPUs that a pod was given, or a part of which."""
        return frozenset(device.gpu for device in self.on(node_of(pod)).get(uid(pod), ()))

    def _on(self, node_name: str) -> dict[str, tuple[Device, ...]]:
        host = self._hosts.get(node_name)
        if host is None:
            return {}
        found = self._devices.get(node_name)
        if found is None or found.host is not host:
            found = self._devices[node_name] = Devices(host)
        pods = {uid(pod): pod for pod in self._world[POD].by("node", node_name) if not is_finished(pod)}
        found.held = {pod_uid: devices for pod_uid, devices in found.held.items() if pod_uid in pods}
        for pod_uid in sorted(pods.keys() - found.held.keys()):
            found.give(pods[pod_uid])
        return dict(found.held)


def all_devices(host: Host, resource: str) -> Iterator[Device]:
    """In the order of GPUs; of shared ones every GPU is given once before any is given twice."""
    is_shared = host.plugin.is_shared and resource in (GPU, SHARED)
    for replica in range(host.plugin.replicas if is_shared else 1):
        suffix = f"::{replica}" if is_shared else ""
        for device in physical(host, resource):
            yield Device(device.id + suffix, resource, device.gpu, device.place, device.profile)


def physical(host: Host, resource: str) -> Iterator[Device]:
    is_single = host.plugin.mig_strategy is MigStrategy.SINGLE
    for index, slices in enumerate(host.layout):
        if slices is None:
            if resource in (GPU, SHARED):
                yield Device(gpu_uuid(host.name, index), resource, index)
            continue
        profiles = [profile for profile, count in sorted(slices.items()) for _ in range(count)]
        for place, profile in enumerate(profiles):
            if is_single or resource == f"nvidia.com/mig-{profile}":
                yield Device(mig_uuid(host.name, index, place), resource, index, place, profile)
