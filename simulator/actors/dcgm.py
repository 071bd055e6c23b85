"""dcgm-exporter's /metrics, one line a GPU and series; values follow who holds the GPU, and drift with time."""

import math
from hashlib import sha256

from simulator.actors.gpu_operator.node.apps import DCGM_EXPORTER, DCGM_EXPORTER_DRA
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, is_finished, labels, name, namespace, node_of, uid
from simulator.actors.quantities import requests
from simulator.actors.skus import SKUS, Sku
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


class Exporters:
    def __init__(self, world: World, hosts: dict[str, Host]) -> None:
        self._world = world
        self._hosts = hosts

    def serve(self, pod: Obj, path: str) -> Served:
        host = self._hosts.get(node_of(pod))
        if labels(pod).get("app") not in EXPORTERS or host is None or path.strip("/") != "metrics":
            return Served(b"404 page not found\n", status=404)
        sku = SKUS.get(host.model)
        text = self._metrics(host, sku) if sku and host.driver else ""
        return Served(text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    def _metrics(self, host: Host, sku: Sku) -> str:
        holders = self._holders(host)
        now_s = self._world.loop.clock.now().timestamp()
        lines: list[str] = []
        readings = [_reading(host, sku, index, holders.get(index), now_s) for index in range(host.gpus)]
        for series, words in SERIES.items():
            lines += [f"# HELP {series} {words}", f"# TYPE {series} gauge"]
            for index, reading in enumerate(readings):
                lines.append(f"{series}{{{_tags(host, sku, index, holders.get(index))}}} {reading[series]}")
        return "\n".join(lines) + "\n"

    def _holders(self, host: Host) -> dict[int, Obj]:
        """GPUs are given out in the order of the pods' uids: any order will do, as long as it stays."""
        held: dict[int, Obj] = {}
        for pod in sorted(self._world[POD].by("node", host.name), key=uid):
            if not is_finished(pod):
                for _ in range(requests(pod)["nvidia.com/gpu"]):
                    held[len(held)] = pod
        return held


def _tags(host: Host, sku: Sku, index: int, holder: Obj | None) -> str:
    tags = {
        "gpu": str(index),
        "UUID": gpu_uuid(host.name, index),
        "pci_bus_id": f"00000000:{16 + index * 16:02X}:00.0",
        "device": f"nvidia{index}",
        "modelName": sku.model_name,
        "Hostname": host.name,
        "DCGM_FI_DRIVER_VERSION": host.driver,
    }
    if holder:
        container = holder["spec"]["containers"][0]["name"]
        tags |= {"container": container, "namespace": namespace(holder), "pod": name(holder)}
    return ",".join(f'{key}="{value}"' for key, value in tags.items())


def _reading(host: Host, sku: Sku, index: int, holder: Obj | None, now_s: float) -> dict[str, float]:
    seed = int(sha256(f"{host.name}{index}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
    wave = 0.5 + 0.5 * math.sin(now_s / 90 + seed * 6.3)
    load = (0.75 + 0.24 * wave) if holder else 0.0
    used = round((0.82 + 0.1 * seed) * sku.memory_mib) if holder else 4
    return {
        "DCGM_FI_DEV_GPU_TEMP": round(28 + 6 * seed + 38 * load),
        "DCGM_FI_DEV_POWER_USAGE": round(sku.idle_watts + (sku.busy_watts - sku.idle_watts) * load, 3),
        "DCGM_FI_DEV_GPU_UTIL": round(100 * load),
        "DCGM_FI_DEV_FB_USED": used,
        "DCGM_FI_DEV_FB_FREE": sku.memory_mib - used - FB_RESERVED_MIB,
        "DCGM_FI_DEV_XID_ERRORS": 0,
    }


def gpu_uuid(node_name: str, index: int) -> str:
    digest = sha256(f"{node_name}/{index}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"
