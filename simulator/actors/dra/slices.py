"""A node's ResourceSlice of the driver gpu.nvidia.com (k8s-dra-driver-gpu cmd/gpu-kubelet-plugin: deviceinfo.go)."""

from collections.abc import Iterable

from simulator.actors import mig
from simulator.actors.cuda import cuda_of
from simulator.actors.dra.api import Api
from simulator.actors.kubelet.host import Host
from simulator.actors.objects import Obj, name, uid
from simulator.actors.skus import SKUS, Sku
from simulator.actors.uuids import gpu_uuid, mig_uuid

DRIVER = "gpu.nvidia.com"


def resource_slice(api: Api, node: Obj, host: Host, *, gpus: Iterable[int], generation: int) -> Obj:
    """`gpus`: which of the machine's can be seen."""
    devices = [device for index in gpus for device in _devices(api, host, index)]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name(node), "uid": uid(node), "controller": True}
    return {
        "apiVersion": api.api_version,
        "kind": "ResourceSlice",
        "metadata": {"generateName": f"{name(node)}-{DRIVER}-", "ownerReferences": [owner]},
        "spec": {
            "driver": DRIVER,
            "nodeName": name(node),
            "pool": {"name": name(node), "generation": generation, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def semantic(version: str) -> str:
    """Versions are parsed and written again: leading zeros are lost, a missing part is 0."""
    return ".".join(str(int(part)) for part in ([*version.split("."), "0", "0"])[:3])


def _devices(api: Api, host: Host, index: int) -> list[Obj]:
    sku, slices = SKUS[host.model], host.layout[index]
    if slices is None:
        about = {"attributes": _attributes(host, sku, index), "capacity": {"memory": {"value": f"{sku.memory_mib}Mi"}}}
        return [api.device(f"gpu-{index}", about)]
    profiles = [profile for profile, count in sorted(slices.items()) for _ in range(count)]
    return [_instance(api, host, sku, index, place, profile) for place, profile in enumerate(profiles)]


def _attributes(host: Host, sku: Sku, index: int) -> Obj:
    cuda = cuda_of(host.driver)
    return {
        "type": {"string": "gpu"},
        "uuid": {"string": gpu_uuid(host.name, index)},
        "productName": {"string": sku.model_name},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": sku.family.capitalize()},
        "cudaComputeCapability": {"version": f"{sku.compute[0]}.{sku.compute[1]}.0"},
        "driverVersion": {"version": semantic(host.driver)},
        "cudaDriverVersion": {"version": semantic(cuda)},
        "addressingMode": {"string": "HMM"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{16 + index * 16:02x}:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{16 + index * 16:02x}"},
    }


def _instance(api: Api, host: Host, sku: Sku, index: int, place: int, profile: str) -> Obj:
    of_profile = mig.PROFILES[sku.family][profile]
    parent = gpu_uuid(host.name, index)
    attributes = _attributes(host, sku, index) | {
        "type": {"string": "mig"},
        "uuid": {"string": mig_uuid(host.name, index, place)},
        "parentUUID": {"string": parent},
        "profile": {"string": profile},
    }
    capacity = {
        "memory": {"value": f"{of_profile.memory_mib}Mi"},
        "multiprocessors": {"value": str(of_profile.multiprocessors)},
        "copyEngines": {"value": str(of_profile.copy)},
        "decoders": {"value": str(of_profile.decoder)},
        "encoders": {"value": str(of_profile.encoder)},
        "jpegEngines": {"value": str(of_profile.jpeg)},
        "ofaEngines": {"value": str(of_profile.ofa)},
        f"memorySlice{place}": {"value": "1"},
    }
    called = f"gpu-{index}-mig-{profile.replace('.', '')}-{place}"
    return api.device(called, {"attributes": attributes, "capacity": capacity})
