"""What is in a cluster, before it is planted there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from simulator.actors.exporting.counters import Choice
from simulator.actors.gpu_operator.release import Release
from simulator.actors.sharing import PLUGIN_CONFIGS
from simulator.fleets.machines import Machine
from simulator.fleets.tenants import Workload

DRIVER_NOW, DRIVER_NEXT = "580.95.05", "580.126.20"
PRODUCT, INSTANCE_TYPE = "nvidia.com/gpu.product", "node.kubernetes.io/instance-type"


class Mode(StrEnum):
    """Who runs the driver, and who offers the GPUs."""

    NVIDIA_DRIVER = "nvidia-driver"  # an NVIDIADriver for each model; ClusterPolicy for the other operands
    CLUSTER_POLICY = "cluster-policy"  # one driver version for the cluster
    GPU_CLUSTER = "gpu-cluster"  # DRA instead of device plugin, GFD and toolkit (26.7, experimental)


@dataclass(frozen=True, slots=True)
class Plan:
    machines: tuple[Machine, ...]
    workloads: tuple[Workload, ...]
    driver: str = DRIVER_NOW
    release: Release = field(default_factory=Release)
    max_parallel: int = 4
    max_unavailable: int | str = "25%"
    mode: Mode = Mode.NVIDIA_DRIVER
    has_agent: bool = False  # somebody's DaemonSet that uses GPUs without a request
    counters: Choice = Choice.SHIPPED  # of the DCGM exporter
    selects_by: str = PRODUCT
    """The label that NVIDIADrivers select their nodes by."""

    @property
    def has_claims(self) -> bool:
        return any(machine.has_claims for machine in self.machines)

    @property
    def has_mps(self) -> bool:
        return any(PLUGIN_CONFIGS[machine.plugin].needs_daemon for machine in self.machines)

    @property
    def drivers(self) -> dict[str, Mapping[str, str]]:
        """NVIDIADriver name -> what it selects."""
        if self.mode is Mode.CLUSTER_POLICY:
            return {}
        owned = [(machine.owner, machine.sku) for machine in self.machines if machine.sku and machine.owner]
        by_product = self.selects_by == PRODUCT
        return {owner: {self.selects_by: sku.product if by_product else sku.instance_type} for owner, sku in owned}


Builder = Callable[..., Plan]
