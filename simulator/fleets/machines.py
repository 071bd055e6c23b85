"""Nodes as a cloud of GPU machines has them: labels of NFD, GFD and the operator, conditions, images, addresses."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from simulator.actors import mig
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.node.gfd_labels import TIMESTAMP, driver_labels, gpu_labels
from simulator.actors.gpu_operator.node.offers import offered
from simulator.actors.gpu_operator.node_labels import ALLOCATION, DRA_OPERANDS, OPERANDS, PCI_PRESENT, PREINSTALLED
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.kubelet.host import (
    CLIQUE_ANNOTATION,
    GPUS_ANNOTATION,
    MIG_CONFIG,
    MIG_STATE,
    MODEL_ANNOTATION,
    OWN_DRIVER_ANNOTATION,
)
from simulator.actors.sharing import CONFIG_LABEL, DEFAULT, PLUGIN_CONFIGS
from simulator.actors.skus import Sku
from simulator.clock import stamp
from simulator.fleets.exporters import OWN_LABEL
from simulator.fleets.tenants import CLAIMED
from simulator.fleets.vendors import Accelerators
from simulator.versions import CONTAINERD, KUBERNETES

Obj = dict[str, Any]
AGE = timedelta(days=143)
CLAIMS_LABEL = "nvidia.com/dra-kubelet-plugin"  # the DRA driver's chart is told to run where this is


@dataclass(frozen=True, slots=True)
class Machine:
    name: str
    index: int
    zone: str
    kernel: str
    sku: Sku | None = None
    gpus: int = 0
    driver: str = ""
    owner: str = ""  # its NVIDIADriver; empty before 26.7, and where ClusterPolicy runs the driver
    mig: str = mig.ALL_DISABLED
    plugin: str = DEFAULT  # the device plugin's configuration that it picks
    clique: str = ""  # of its NVLink domain
    is_preinstalled: bool = False  # the host brings the driver
    is_spot: bool = False
    has_claims: bool = False  # DRA offers its GPUs
    is_in_gpu_cluster: bool = False  # and no operand of ClusterPolicy runs there
    has_own_exporter: bool = False  # its people run DCGM's exporter from its own chart, not the operator's
    accelerators: Accelerators | None = None  # of another vendor

    @property
    def labels_of_gpus(self) -> dict[str, str]:
        """GFD's, which a node whose GPUs DRA offers has not."""
        if self.sku is None or self.has_claims:
            return {}
        cut, config = mig.layout(self.mig, self.gpus), PLUGIN_CONFIGS[self.plugin]
        return gpu_labels(self.sku, cut, config, clique=self.clique) | driver_labels(self.driver)

    @property
    def product(self) -> str:
        return self.labels_of_gpus.get("nvidia.com/gpu.product", "")

    @property
    def offers(self) -> dict[str, int]:
        """Extended resources."""
        if self.accelerators:
            return {self.accelerators.resource: self.accelerators.count}
        if self.sku is None or self.has_claims:
            return {}
        return offered(mig.layout(self.mig, self.gpus), PLUGIN_CONFIGS[self.plugin])

    @property
    def rooms(self) -> dict[str, int]:
        """What tenants may take: resources, and the devices that claims are given."""
        return {CLAIMED: self.gpus} if self.has_claims else self.offers


def node(machine: Machine, now: datetime) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.name,
            "creationTimestamp": stamp(now - AGE + timedelta(minutes=machine.index)),
            "labels": _labels(machine, now),
            "annotations": _annotations(machine),
        },
        "spec": {
            "podCIDR": f"10.{64 + machine.index // 256}.{machine.index % 256}.0/24",
            "podCIDRs": [f"10.{64 + machine.index // 256}.{machine.index % 256}.0/24"],
            "providerID": f"metal://{machine.zone}/{_hex(machine.name)[:12]}",
        },
        "status": _status(machine, now),
    }


def _annotations(machine: Machine) -> dict[str, str]:
    annotations = {"node.alpha.kubernetes.io/ttl": "0"}
    if machine.sku is None:
        return annotations
    annotations |= {GPUS_ANNOTATION: str(machine.gpus), MODEL_ANNOTATION: machine.sku.product}
    annotations[keys.ENABLED] = "true"
    if machine.is_preinstalled:
        annotations[OWN_DRIVER_ANNOTATION] = machine.driver
    if machine.clique:
        annotations[CLIQUE_ANNOTATION] = machine.clique
    return annotations


def _labels(machine: Machine, now: datetime) -> dict[str, str]:
    major, minor = machine.kernel.split(".")[:2]
    arch = _arch(machine)
    labels = {
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": arch,
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": _instance_type(machine),
        "topology.kubernetes.io/region": "region-1",
        "topology.kubernetes.io/zone": machine.zone,
        "feature.node.kubernetes.io/cpu-model.vendor_id": "Intel" if arch == "amd64" else "NVIDIA",
        "feature.node.kubernetes.io/kernel-version.full": machine.kernel,
        "feature.node.kubernetes.io/kernel-version.major": major,
        "feature.node.kubernetes.io/kernel-version.minor": minor,
        "feature.node.kubernetes.io/system-os_release.ID": "ubuntu",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "22.04",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID.major": "22",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID.minor": "04",
    }
    if machine.is_spot:
        labels |= {"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "spot"}
    if machine.accelerators:
        labels |= machine.accelerators.labels
    return labels | _gpu_labels(machine, now) if machine.sku else labels


def _gpu_labels(machine: Machine, now: datetime) -> dict[str, str]:
    """Of NFD, GFD, the operator and the MIG manager."""
    labels = {PCI_PRESENT: "true", keys.PRESENT: "true"}
    if machine.is_in_gpu_cluster:
        labels |= {keys.DEPLOY + operand: "true" for operand in DRA_OPERANDS} | {ALLOCATION: "dra"}
        return labels | _driver_labels(machine)
    labels |= {keys.DEPLOY + operand: "true" for operand in OPERANDS} | machine.labels_of_gpus
    labels |= {MIG_CONFIG: machine.mig, MIG_STATE: "success"}
    if machine.has_claims:
        labels |= {keys.DEPLOY + operand: "false" for operand in ("device-plugin", "gpu-feature-discovery")}
        labels[CLAIMS_LABEL] = "true"
    else:
        labels[TIMESTAMP] = str(int((now - timedelta(days=20)).timestamp()))
    if machine.has_own_exporter:
        labels |= {keys.DEPLOY + "dcgm-exporter": "false", OWN_LABEL: "own"}
    if machine.plugin != DEFAULT:
        labels[CONFIG_LABEL] = machine.plugin
    return labels | _driver_labels(machine)


def _driver_labels(machine: Machine) -> dict[str, str]:
    owner = {keys.OWNER: machine.owner} if machine.owner else {}
    if machine.is_preinstalled:
        return owner | {keys.DEPLOY_DRIVER: PREINSTALLED}
    return owner | {keys.STATE: str(UpgradeState.DONE)}


def _arch(machine: Machine) -> str:
    return machine.sku.arch if machine.sku else "amd64"


def _instance_type(machine: Machine) -> str:
    if machine.accelerators:
        return machine.accelerators.instance_type
    return machine.sku.instance_type if machine.sku else "cpu.64c"


def _status(machine: Machine, now: datetime) -> Obj:
    size: dict[str, str] = {"cpu": "192", "memory": "2113556280Ki", "ephemeral-storage": "3749831460Ki", "pods": "110"}
    if machine.sku is None and machine.accelerators is None:
        size = {"cpu": "64", "memory": "263842180Ki", "ephemeral-storage": "921300460Ki", "pods": "110"}
    size |= {"hugepages-1Gi": "0", "hugepages-2Mi": "0"}
    size |= {resource: str(count) for resource, count in machine.offers.items()}
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
            "architecture": _arch(machine),
            "bootID": _uuid(f"boot{machine.name}"),
            "containerRuntimeVersion": f"containerd://{CONTAINERD}",
            "kernelVersion": machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": KUBERNETES,
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
    if machine.driver and not machine.is_preinstalled:
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
