"""The combination that a cluster runs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu.compatibility.systems import System, read_runtime, read_system


@dataclass(frozen=True)
class Facts:
    """The facts of a combination. Blank: not reported. A switch that is None is unknown."""

    operator: str = ""  # version of the GPU Operator
    mode: str = ""  # the driver's controller: ClusterPolicy, NVIDIADriver, GPUCluster; blank: none
    kubernetes: str = ""  # of the API server: v1.33.4
    kubelet: str = ""  # v1.32.9
    distribution: str = ""  # rke2, k3s, k0s, gke, eks, aks; blank: unknown
    os: str = ""  # as reported by the node: Ubuntu 24.04.2 LTS
    openshift: str = ""  # as labelled by Node Feature Discovery: 4.19
    kernel: str = ""
    runtime: str = ""  # containerd://2.1.4
    driver: str = ""
    product: str = ""  # as labelled by GFD, without -SHARED and -MIG-…
    mig: str = ""  # single, mixed; blank: no MIG
    cuda: str = ""  # version that a workload was built with
    is_precompiled: bool = False
    modules: str = ""  # requested kernel modules: auto, open, proprietary; blank: not specified
    toolkit: str = ""
    mig_manager: str = ""
    cdi: bool | None = None
    nri: bool | None = None
    rdma: bool | None = None
    gds: bool | None = None
    gdrcopy: bool | None = None
    is_preinstalled: bool | None = None
    asked: Mapping[str, str] = field(default_factory=dict)  # image tags by operand, as configured

    @property
    def system(self) -> System:
        return read_system(self.os)

    @property
    def runtime_name(self) -> str:
        return read_runtime(self.runtime)[0]

    @property
    def runtime_version(self) -> str:
        return read_runtime(self.runtime)[1]
