"""A machine: what is in it, and which driver its kernel has loaded."""

from dataclasses import dataclass, field

from simulator.actors import mig
from simulator.actors.mig import Layout
from simulator.actors.objects import Obj, annotations, labels, name, status
from simulator.actors.sharing import PluginConfig, config_of

# Written by whoever racked the machine; unlike GFD's labels they outlive a driver.
GPUS_ANNOTATION = "hardware.example.com/gpus"
MODEL_ANNOTATION = "hardware.example.com/gpu-model"
CLIQUE_ANNOTATION = "hardware.example.com/nvlink-clique"
OWN_DRIVER_ANNOTATION = "hardware.example.com/own-driver"  # installed on the host: no pod brings it, none unloads it
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"


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
    has_own_driver: bool = False
    mig: str = mig.ALL_DISABLED  # the configuration that the GPUs are cut by
    plugin: PluginConfig = field(default_factory=PluginConfig)
    clique: str = ""  # of its NVLink domain
    unloads: int = 0  # of its driver: what that had counted is gone each time
    pods_started: int = 0
    images: set[str] = field(default_factory=set)  # on its disk

    @property
    def layout(self) -> Layout:
        return mig.layout(self.mig, self.gpus)

    def load(self, driver: str, digest: str) -> None:
        self.driver, self.digest = driver, digest

    def unload(self) -> None:
        self.driver = self.digest = ""
        self.unloads += 1

    def boot(self) -> None:
        """Loads its driver anew, if it has one."""
        self.unloads += 1

    def next_pod_ip(self) -> str:
        self.pods_started += 1
        return f"{self.pod_prefix}.{self.pods_started % 250 + 2}"


def host_of(node: Obj) -> Host:
    about = status(node).get("nodeInfo") or {}
    ips = [each["address"] for each in status(node).get("addresses") or () if each["type"] == "InternalIP"]
    cidr = (node["spec"].get("podCIDR") or "10.244.0.0/24").rsplit(".", 1)[0]
    tag = labels(node).get("feature.node.kubernetes.io/system-os_release.ID", "ubuntu")
    tag += labels(node).get("feature.node.kubernetes.io/system-os_release.VERSION_ID", "22.04")
    own_driver = annotations(node).get(OWN_DRIVER_ANNOTATION, "")
    return Host(
        name=name(node),
        kernel=about.get("kernelVersion", ""),
        os_tag=tag,
        ip=ips[0] if ips else "10.0.0.1",
        pod_prefix=cidr,
        gpus=int(annotations(node).get(GPUS_ANNOTATION, "0")),
        model=annotations(node).get(MODEL_ANNOTATION, ""),
        driver=own_driver,
        has_own_driver=bool(own_driver),
        mig=_cut_by(node),
        plugin=config_of(labels(node)),
        clique=annotations(node).get(CLIQUE_ANNOTATION, ""),
    )


def _cut_by(node: Obj) -> str:
    """A machine seen for the first time is cut as the MIG manager says it has cut it."""
    named = labels(node).get(MIG_CONFIG, mig.ALL_DISABLED)
    is_done = labels(node).get(MIG_STATE, "success") == "success"
    return named if is_done and named in mig.NAMES else mig.ALL_DISABLED
