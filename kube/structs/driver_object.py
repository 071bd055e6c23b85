"""NVIDIADriver, ClusterPolicy and GPUCluster: the desired GPU stack of some nodes.

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
    nri_plugin_enabled: bool | None = None  # since 26.3.0


class DriverManager(Struct, frozen=True):
    env: list[Variable] | None = None


class DriverSpec(Struct, frozen=True):
    """The spec of an NVIDIADriver, or the `driver` part of a ClusterPolicy."""

    version: str | None = ""
    repository: str | None = ""
    image: str | None = ""
    use_precompiled: bool | None = False
    node_selector: dict[str, str] | None = None  # NVIDIADriver only; none: every GPU node
    default: bool | None = False  # NVIDIADriver only: for nodes that no other object selects
    upgrade_policy: dict[str, Any] | None = None
    manager: DriverManager | None = None
    enabled: bool | None = True  # ClusterPolicy only
    rdma: Switch | None = None
    gds: Switch | None = None  # NVIDIADriver only, like the next; a ClusterPolicy has it beside its driver
    gdrcopy: Switch | None = None
    kernel_module_type: str | None = ""  # auto, open, proprietary; since 25.3.0
    use_nvidia_driver_crd: bool | None = msgspec.field(default=False, name="useNvidiaDriverCRD")  # ClusterPolicy only


class ConfigName(Struct, frozen=True):
    """The name of an operand's ConfigMap in the operator's namespace."""

    name: str | None = ""


class OperandSpec(Struct, frozen=True):
    enabled: bool | None = None  # None: the operator's default for the operand
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
    """The spec of a GPUCluster. Its driver comes from an NVIDIADriver or from the host."""

    dra_driver: OperandSpec | None = None
    dcgm: OperandSpec | None = None
    dcgm_exporter: OperandSpec | None = None


class WholeSpec(Struct, frozen=True):
    """The complete spec as sent."""

    spec: dict[str, Any] | None = None


class DriverStatus(Struct, frozen=True):
    state: str | None = ""
    namespace: str | None = ""  # of operator and operands; ClusterPolicy and GPUCluster only
    conditions: list[Condition] | None = None


class DriverObjectSeen(Seen, frozen=True):
    """The common interface of the three kinds."""

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
        """Tells whether drivers come with the nodes' images."""
        return False

    @property
    def sandbox_workloads(self) -> bool:
        return False

    @property
    def operands(self) -> Mapping[str, OperandSpec | None]:
        return MappingProxyType({})

    @property
    def mig_strategy(self) -> str:
        return ""

    @property
    def uses_cdi(self) -> bool | None:
        """Tells whether CDI is on. None: not specified."""
        return None

    @property
    def uses_nri(self) -> bool | None:
        """Tells whether the NRI plugin is on. None: not specified."""
        return None

    @property
    def uses_rdma(self) -> bool | None:
        """Tells whether RDMA is on. None: not specified."""
        return self.driver.rdma.enabled if self.driver.rdma else None

    @property
    def uses_gds(self) -> bool | None:
        """Tells whether GPUDirect Storage is on. None: not specified."""
        return self.driver.gds.enabled if self.driver.gds else None

    @property
    def uses_gdrcopy(self) -> bool | None:
        """Tells whether GDRCopy is on. None: not specified."""
        return self.driver.gdrcopy.enabled if self.driver.gdrcopy else None

    @property
    def namespace(self) -> str:
        """Returns the operator's namespace. Blank: not reported yet."""
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
        fields = {name: getattr(self.policy, name) for name in self.policy.__struct_fields__}
        return {name: spec for name, spec in fields.items() if isinstance(spec, OperandSpec)}

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
    """The DRA-based stack in place of a ClusterPolicy: no device plugin, no GPU feature discovery, no driver."""

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
