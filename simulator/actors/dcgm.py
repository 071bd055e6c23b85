"""dcgm-exporter's /metrics, one line a device and series; values follow who holds it, and drift with time.

NVIDIA/dcgm-exporter, internal/pkg/transformation/kubernetes.go: DCGM_EXPORTER_KUBERNETES adds who holds the device, of
a shared one whoever comes last; with KUBERNETES_VIRTUAL_GPUS there is a line for each of them, and none for nobody.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256

from simulator.actors.apps import DCGM_EXPORTER, DCGM_EXPORTER_DRA
from simulator.actors.kubelet.devices import Device, Holdings
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, labels, name, namespace, node_of
from simulator.actors.skus import SKUS, Sku
from simulator.actors.uuids import gpu_uuid
from simulator.actors.world import World
from simulator.kinds import POD
from simulator.pod_ends import Served

PORT = 9400
EXPORTERS = (DCGM_EXPORTER, DCGM_EXPORTER_DRA)
FB_RESERVED_MIB = 560
SERIES = {
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_FB_FREE": "Framebuffer memory free (in MiB).",
    "DCGM_FI_DEV_XID_ERRORS": "Value of the last XID error encountered.",
}
Place = tuple[int, int]  # a GPU, and on it the place of an instance; -1 for the whole of it


@dataclass(frozen=True, slots=True)
class Line:
    gpu: int
    place: int
    profile: str  # empty: the GPU is not cut
    holder: Obj | None
    vgpu: str = ""


@dataclass(frozen=True, slots=True)
class Naming:
    """What the exporter's own settings make it add."""

    names_pods: bool
    names_all: bool  # of those that share a device

    @classmethod
    def of(cls, exporter: Obj) -> "Naming":
        env = {each["name"]: each.get("value") for each in exporter["spec"]["containers"][0].get("env") or ()}
        return cls(env.get("DCGM_EXPORTER_KUBERNETES") != "false", env.get("KUBERNETES_VIRTUAL_GPUS") == "true")


class Exporters:
    def __init__(self, world: World, hosts: dict[str, Host]) -> None:
        self._world = world
        self._hosts = hosts
        self._holdings = Holdings(world, hosts)

    def serve(self, pod: Obj, path: str) -> Served:
        host = self._hosts.get(node_of(pod))
        if labels(pod).get("app") not in EXPORTERS or host is None or path.strip("/") != "metrics":
            return Served(b"404 page not found\n", status=404)
        sku = SKUS.get(host.model)
        text = self._metrics(host, sku, Naming.of(pod)) if sku and host.driver else ""
        return Served(text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _metrics(self, host: Host, sku: Sku, naming: Naming) -> str:
        now_s = self._world.loop.clock.now().timestamp()
        lines_of = self._shared(host) if naming.names_pods and naming.names_all else self._lines(host)
        told = [(_tags(host, sku, line, naming), _reading(host, sku, line, now_s)) for line in lines_of]
        lines: list[str] = []
        for series, words in SERIES.items():
            lines += [f"# HELP {series} {words}", f"# TYPE {series} gauge"]
            lines += [f"{series}{{{tags}}} {reading[series]}" for tags, reading in told]
        return "\n".join(lines) + "\n"

    def _lines(self, host: Host) -> Iterator[Line]:
        holders = self._holders(host)
        for index, slices in enumerate(host.layout):
            if slices is None:
                yield Line(index, -1, "", holders.get((index, -1)))
                continue
            profiles = [profile for profile, count in sorted(slices.items()) for _ in range(count)]
            for place, profile in enumerate(profiles):
                yield Line(index, place, profile, holders.get((index, place)))

    def _shared(self, host: Host) -> Iterator[Line]:
        everybody = list(self._devices(host))
        for line in self._lines(host):
            for device, pod in everybody:
                if (device.gpu, device.place if device.profile else -1) == (line.gpu, line.place):
                    yield replace(line, holder=pod, vgpu=device.id.partition("::")[2])

    def _devices(self, host: Host) -> Iterator[tuple[Device, Obj]]:
        for pod_uid, devices in self._holdings.on(host.name).items():
            pod = self._world[POD].of_uid(pod_uid)
            if pod is not None:
                yield from ((device, pod) for device in devices)

    def _holders(self, host: Host) -> dict[Place, Obj]:
        """Of a shared GPU one of those that hold it, as the exporter does without its own setting for shared ones."""
        return {(device.gpu, device.place if device.profile else -1): pod for device, pod in self._devices(host)}


def _tags(host: Host, sku: Sku, line: Line, naming: Naming) -> str:
    tags = {
        "gpu": str(line.gpu),
        "UUID": gpu_uuid(host.name, line.gpu),
        "pci_bus_id": f"00000000:{16 + line.gpu * 16:02X}:00.0",
        "device": f"nvidia{line.gpu}",
        "modelName": sku.model_name,
        "Hostname": host.name,
        "DCGM_FI_DRIVER_VERSION": host.driver,
    }
    if line.profile:
        tags |= {"GPU_I_PROFILE": line.profile, "GPU_I_ID": str(line.place + 1)}
    if line.holder and naming.names_pods:
        container = line.holder["spec"]["containers"][0]["name"]
        tags |= {"container": container, "namespace": namespace(line.holder), "pod": name(line.holder)}
        tags |= {"vgpu": line.vgpu} if line.vgpu else {}
    return ",".join(f'{key}="{value}"' for key, value in tags.items())


def _reading(host: Host, sku: Sku, line: Line, now_s: float) -> dict[str, float]:
    seed = int(sha256(f"{host.name}{line.gpu}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
    wave = 0.5 + 0.5 * math.sin(now_s / 90 + seed * 6.3)
    load = (0.75 + 0.24 * wave) if line.holder else 0.0
    used = round((0.82 + 0.1 * seed) * sku.memory_mib) if line.holder else 4
    return {
        "DCGM_FI_DEV_GPU_TEMP": round(28 + 6 * seed + 38 * load),
        "DCGM_FI_DEV_POWER_USAGE": round(sku.idle_watts + (sku.busy_watts - sku.idle_watts) * load, 3),
        "DCGM_FI_DEV_GPU_UTIL": round(100 * load),
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_FREE": sku.memory_mib - used - FB_RESERVED_MIB,
        "DCGM_FI_DEV_XID_ERRORS": 0,
    }
