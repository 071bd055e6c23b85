"""NVIDIADriver, ClusterPolicy and GPUCluster: each says what the GPU stack of some nodes should be.

Fields from gpu-operator: api/nvidia/v1/clusterpolicy_types.go and v1alpha1/{nvidiadriver,gpucluster}_types.go.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from kube.structs.meta import Condition, Seen, Struct, Variable


class Switch(Struct, frozen=True):
    enabled: bool | None = None


class CdiSpec(Switch, frozen=True):
    nri_plugin_enabled: bool | None = None  # from 26.3.0 on


class DriverManager(Struct, frozen=True):
    env: list[Variable] | None = None


class DriverSpec(Struct, frozen=True):
    """The spec of an NVIDIADriver, and the part `driver` of a ClusterPolicy's."""

    version: str | None = ""
    repository: str | None = ""
    image: str | None = ""
    use_precompiled: bool | None = False
    node_selector: dict[str, str] | None = None  # NVIDIADriver only; none: every GPU node
    default: bool | None = False  # NVIDIADriver only: for the nodes that no other selects
    upgrade_policy: dict[str, Any] | None = None
    manager: DriverManager | None = None
    enabled: bool | None = True  # ClusterPolicy only
    rdma: Switch | None = None
    gds: Switch | None = None  # NVIDIADriver only, as the next: a ClusterPolicy says it beside its driver
    gdrcopy: Switch | None = None
    kernel_module_type: str | None = ""  # auto, open, proprietary; from 25.3.0 on
    use_nvidia_driver_crd: bool | None = msgspec.field(default=False, name="useNvidiaDriverCRD")  # ClusterPolicy only


class ConfigName(Struct, frozen=True):
    """Which ConfigMap an operand reads, in the operator's namespace."""

    name: str | None = ""


class OperandSpec(Struct, frozen=True):
    enabled: bool | None = None  # not said: the operator's default for that operand
    version: str | None = ""
    config: ConfigName | None = None  # device plugin and MIG manager


class MigSpec(Struct, frozen=True):
    strategy: str | None = ""  # none, single, mixed


class PolicySpec(Struct, frozen=True):
    driver: DriverSpec | None = None
    sandbox_workloads: Switch | None = None
    mig: MigSpec | None = None
    cdi: CdiSpec | None = None
    gds: Switch | None = None
    gdrcopy: Switch | None = None
    toolkit: OperandSpec | None = None
    device_plugin: OperandSpec | None = None
    gfd: OperandSpec | None = None
    dcgm: OperandSpec | None = None
    dcgm_exporter: OperandSpec | None = None
    mig_manager: OperandSpec | None = None
    validator: OperandSpec | None = None
    node_status_exporter: OperandSpec | None = None
    vgpu_manager: OperandSpec | None = None
    vgpu_device_manager: OperandSpec | None = None
    vfio_manager: OperandSpec | None = None
    sandbox_device_plugin: OperandSpec | None = None
    kata_sandbox_device_plugin: OperandSpec | None = None
    cc_manager: OperandSpec | None = None


class ClusterSpec(Struct, frozen=True):
    """Of a GPUCluster. Its driver is an NVIDIADriver's or the host's to say."""

    dra_driver: OperandSpec | None = None
    dcgm: OperandSpec | None = None
    dcgm_exporter: OperandSpec | None = None


class WholeSpec(Struct, frozen=True):
    """The spec as it was sent."""

    spec: dict[str, Any] | None = None


class DriverStatus(Struct, frozen=True):
    state: str | None = ""
    namespace: str | None = ""  # of the operator and its operands; ClusterPolicy and GPUCluster only
    conditions: list[Condition] | None = None


class DriverObjectSeen(Seen, frozen=True):
    """What the kinds have in common: all that the rest of the product needs to know."""

    status: DriverStatus | None = None

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @property
    def driver(self) -> DriverSpec:
        raise NotImplementedError

    @property
    def uses_driver_crd(self) -> bool:
        return False

    @property
    def is_driver_off(self) -> bool:
        """Whether it leaves drivers to the nodes' images."""
        return False

    @property
    def sandbox_workloads(self) -> bool:
        return False

    @property
    def operands(self) -> Mapping[str, OperandSpec | None]:
        """What it says of each operand, by the field that says it."""
        return MappingProxyType({})

    @property
    def mig_strategy(self) -> str:
        return ""

    @property
    def uses_cdi(self) -> bool | None:
        """None: it does not say."""
        return None

    @property
    def uses_nri(self) -> bool | None:
        """None: it does not say."""
        return None

    @property
    def uses_rdma(self) -> bool | None:
        """None: it does not say."""
        return self.driver.rdma.enabled if self.driver.rdma else None

    @property
    def uses_gds(self) -> bool | None:
        """GPUDirect Storage. None: it does not say."""
        return self.driver.gds.enabled if self.driver.gds else None

    @property
    def uses_gdrcopy(self) -> bool | None:
        """None: it does not say."""
        return self.driver.gdrcopy.enabled if self.driver.gdrcopy else None

    @property
    def namespace(self) -> str:
        """Where the operator runs. Blank: it has not said yet."""
        return (self.status.namespace if self.status else "") or ""


class NvidiaDriverSeen(DriverObjectSeen, frozen=True):
    spec: DriverSpec | None = None

    @property
    def kind(self) -> str:
        return "NVIDIADriver"

    @property
    def driver(self) -> DriverSpec:
        return self.spec or DriverSpec()


class ClusterPolicySeen(DriverObjectSeen, frozen=True):
    spec: PolicySpec | None = None

    @property
    def kind(self) -> str:
        return "ClusterPolicy"

    @property
    def policy(self) -> PolicySpec:
        return self.spec or PolicySpec()

    @property
    def driver(self) -> DriverSpec:
        return self.policy.driver or DriverSpec()

    @property
    def uses_driver_crd(self) -> bool:
        return bool(self.driver.use_nvidia_driver_crd)

    @property
    def is_driver_off(self) -> bool:
        return self.driver.enabled is False

    @property
    def sandbox_workloads(self) -> bool:
        return bool(self.policy.sandbox_workloads and self.policy.sandbox_workloads.enabled)

    @property
    def operands(self) -> Mapping[str, OperandSpec | None]:
        said = {name: getattr(self.policy, name) for name in self.policy.__struct_fields__}
        return {name: spec for name, spec in said.items() if isinstance(spec, OperandSpec)}

    @property
    def mig_strategy(self) -> str:
        return (self.policy.mig.strategy if self.policy.mig else "") or ""

    @property
    def uses_cdi(self) -> bool | None:
        return self.policy.cdi.enabled if self.policy.cdi else None

    @property
    def uses_nri(self) -> bool | None:
        return self.policy.cdi.nri_plugin_enabled if self.policy.cdi else None

    @property
    def uses_gds(self) -> bool | None:
        return self.policy.gds.enabled if self.policy.gds else None

    @property
    def uses_gdrcopy(self) -> bool | None:
        return self.policy.gdrcopy.enabled if self.policy.gdrcopy else None


class GpuClusterSeen(DriverObjectSeen, frozen=True):
    """The DRA-based stack, instead of a ClusterPolicy: no device plugin, no GPU feature discovery, no driver."""

    spec: ClusterSpec | None = None

    @property
    def kind(self) -> str:
        return "GPUCluster"

    @property
    def driver(self) -> DriverSpec:
        return DriverSpec()

    @property
    def operands(self) -> Mapping[str, OperandSpec | None]:
        spec = self.spec or ClusterSpec()
        return {"dra_driver": spec.dra_driver, "dcgm_dra": spec.dcgm, "dcgm_exporter_dra": spec.dcgm_exporter}
