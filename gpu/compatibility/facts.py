"""What runs together, as a cluster shows it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu.compatibility.systems import System, read_runtime, read_system


@dataclass(frozen=True)
class Facts:
    """Blank: the cluster does not say. A switch that is None cannot be read."""

    operator: str = ""  # version of the GPU Operator
    mode: str = ""  # what says which driver runs: ClusterPolicy, NVIDIADriver, GPUCluster; blank: nothing does
    kubernetes: str = ""  # of the API server: v1.33.4
    kubelet: str = ""  # v1.32.9
    distribution: str = ""  # rke2, k3s, k0s, gke, eks, aks; blank: none that is told
    os: str = ""  # as the node says: Ubuntu 24.04.2 LTS
    openshift: str = ""  # as Node Feature Discovery labels it: 4.19
    kernel: str = ""
    runtime: str = ""  # containerd://2.1.4
    driver: str = ""
    product: str = ""  # as GFD labels it, without -SHARED and -MIG-…
    mig: str = ""  # single, mixed; blank: no MIG
    cuda: str = ""  # that a workload was built with
    is_precompiled: bool = False
    modules: str = ""  # that the driver is asked for: auto, open, proprietary; blank: nothing is said
    toolkit: str = ""
    mig_manager: str = ""
    cdi: bool | None = None
    nri: bool | None = None
    rdma: bool | None = None
    gds: bool | None = None
    gdrcopy: bool | None = None
    is_preinstalled: bool | None = None
    asked: Mapping[str, str] = field(default_factory=dict)  # image tags by operand, as somebody set them

    @property
    def system(self) -> System:
        return read_system(self.os)

    @property
    def runtime_name(self) -> str:
        return read_runtime(self.runtime)[0]

    @property
    def runtime_version(self) -> str:
        return read_runtime(self.runtime)[1]
