"""A machine: what is in it, and which driver its kernel has loaded."""

from dataclasses import dataclass

from simulator.actors.objects import Obj, annotations, labels, name, status

# Written by whoever racked the machine; unlike GFD's labels they outlive a driver.
GPUS_ANNOTATION = "hardware.example.com/gpus"
MODEL_ANNOTATION = "hardware.example.com/gpu-model"


@dataclass
class Host:
    name: str
    kernel: str
    os_tag: str
    ip: str
    pod_prefix: str
    gpus: int
    model: str
    driver: str = ""  # version of the loaded kernel modules; empty: none
    digest: str = ""  # the configuration they were loaded with
    pods_started: int = 0

    def next_pod_ip(self) -> str:
        self.pods_started += 1
        return f"{self.pod_prefix}.{self.pods_started % 250 + 2}"


def host_of(node: Obj) -> Host:
    about = status(node).get("nodeInfo") or {}
    ips = [each["address"] for each in status(node).get("addresses") or () if each["type"] == "InternalIP"]
    cidr = (node["spec"].get("podCIDR") or "10.244.0.0/24").rsplit(".", 1)[0]
    tag = labels(node).get("feature.node.kubernetes.io/system-os_release.ID", "ubuntu")
    tag += labels(node).get("feature.node.kubernetes.io/system-os_release.VERSION_ID", "22.04")
    return Host(
        name=name(node),
        kernel=about.get("kernelVersion", ""),
        os_tag=tag,
        ip=ips[0] if ips else "10.0.0.1",
        pod_prefix=cidr,
        gpus=int(annotations(node).get(GPUS_ANNOTATION, "0")),
        model=annotations(node).get(MODEL_ANNOTATION, ""),
    )
