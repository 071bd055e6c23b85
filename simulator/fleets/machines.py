"""Nodes as a cloud of GPU machines has them: labels of NFD, GFD and the operator, conditions, images, addresses."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.node.gfd import driver_labels, gpu_labels
from simulator.actors.gpu_operator.node_labels import OPERANDS, PCI_PRESENT
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.kubelet.host import GPUS_ANNOTATION, MODEL_ANNOTATION
from simulator.actors.skus import Sku
from simulator.clock import stamp

Obj = dict[str, Any]
AGE = timedelta(days=143)
KUBELET = "v1.33.5"


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    index: int
    zone: str
    kernel: str
    sku: Sku | None = None
    gpus: int = 0
    driver: str = ""
    owner: str = ""  # its NVIDIADriver; empty before 26.7


def node(machine: Machine, now: datetime) -> Obj:
    annotations = {"node.alpha.kubernetes.io/ttl": "0"}
    if machine.sku:
        annotations |= {GPUS_ANNOTATION: str(machine.gpus), MODEL_ANNOTATION: machine.sku.product, keys.ENABLED: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "creationTimestamp": stamp(now - AGE + timedelta(minutes=machine.index)),
            "labels": _labels(machine, now),
            "annotations": annotations,
        },
        "spec": {
            "podCIDR": f"10.{64 + machine.index // 256}.{machine.index % 256}.0/24",
            "podCIDRs": [f"10.{64 + machine.index // 256}.{machine.index % 256}.0/24"],
            "providerID": f"metal://{machine.zone}/{_hex(machine.name)[:12]}",
        },
        "status": _status(machine, now),
    }


def _labels(machine: Machine, now: datetime) -> dict[str, str]:
    major, minor = machine.kernel.split(".")[:2]
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.sku.instance_type if machine.sku else "cpu.64c",
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": machine.zone,
        "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel",
        "feature.node.kubernetes.io/kernel-version.full": machine.kernel,
        "feature.node.kubernetes.io/kernel-version.major": major,
        "feature.node.kubernetes.io/kernel-version.minor": minor,
        "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "22.04",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID.major": "22",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID.minor": "04",
    }
    if machine.sku is None:
        return labels
    labels |= {PCI_PRESENT: "true", keys.PRESENT: "true", keys.STATE: str(UpgradeState.DONE)}
    labels |= {keys.DEPLOY + operand: "true" for operand in OPERANDS}
    labels |= gpu_labels(machine.sku, machine.gpus) | driver_labels(machine.driver)
    labels |= {"nvidia.com/mig.config": "all-disabled", "nvidia.com/mig.config.state": "success"}
    labels["nvidia.com/gfd.timestamp"] = str(int((now - timedelta(days=20)).timestamp()))
    if machine.owner:
        labels[keys.OWNER] = machine.owner
    return labels


def _status(machine: Machine, now: datetime) -> Obj:
    size: dict[str, str] = {"cpu": "192", "memory": "2113556280Ki", "ephemeral-storage": "3749831460Ki", "pods": "110"}
    if machine.sku is None:
        size = {"cpu": "64", "memory": "263842180Ki", "ephemeral-storage": "921300460Ki", "pods": "110"}
    size |= {"hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    if machine.sku:
        size["nvidia.com/gpu"] = str(machine.gpus)
    return {
        "addresses": [
            {"type": "InternalIP", "address": _address(machine.index)},
            {"type": "Hostname", "address": machine.name},
        ],
        "allocatable": size,
        "capacity": size,
        "conditions": _conditions(now),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "images": _images(machine),
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": _uuid(f"boot{machine.name}"),
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": KUBELET,
            "machineID": _hex(machine.name)[:32],
            "operatingSystem": "linux",
            "osImage": "Ubuntu 22.04.5 LTS",
            "systemUUID": _uuid(machine.name),
        },
    }


def _conditions(now: datetime) -> list[Obj]:
    told = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    since = stamp(now - timedelta(days=20))
    return [
        {
            "type": type_,
            "status": value,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": stamp(now),
            "lastTransitionTime": since,
        }
        for type_, value, reason, message in told
    ]


def _images(machine: Machine) -> list[Obj]:
    pulled = {"registry.k8s.io/pause:3.10": 320448, "registry.k8s.io/nfd/node-feature-discovery:v0.18.2": 89_211_004}
    if machine.driver:
        pulled[f"nvcr.io/nvidia/driver:{machine.driver}-ubuntu22.04"] = 1_418_337_203
        pulled["nvcr.io/nvidia/k8s-device-plugin:v0.20.0"] = 196_004_311
    return [{"names": [name], "sizeBytes": size} for name, size in pulled.items()]


def _address(index: int) -> str:
    return f"10.{index // 62500}.{index // 250 % 250}.{index % 250 + 4}"


def _hex(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _uuid(text: str) -> str:
    digest = _hex(text)
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"
