"""NVIDIADriver and ClusterPolicy: each says which driver some nodes should run."""

from typing import Any

import msgspec

from fleet.kube.structs.meta import Condition, Seen, Struct


class DriverSpec(Struct, frozen=True):
    """The spec of an NVIDIADriver, and the part `driver` of a ClusterPolicy's."""

    version: str | None = ""
    repository: str | None = ""
    image: str | None = ""
    use_precompiled: bool | None = False
    node_selector: dict[str, str] | None = None  # NVIDIADriver only; none: every GPU node
    default: bool | None = False  # NVIDIADriver only: for the nodes that no other selects
    upgrade_policy: dict[str, Any] | None = None
    enabled: bool | None = True  # ClusterPolicy only
    use_nvidia_driver_crd: bool | None = msgspec.field(default=False, name="useNvidiaDriverCRD")  # ClusterPolicy only


class SandboxWorkloads(Struct, frozen=True):
    enabled: bool | None = False


class PolicySpec(Struct, frozen=True):
    driver: DriverSpec = DriverSpec()
    sandbox_workloads: SandboxWorkloads | None = None


class DriverStatus(Struct, frozen=True):
    state: str | None = ""
    conditions: list[Condition] | None = None


class DriverObjectSeen(Seen, frozen=True):
    """What both kinds have in common: all that the rest of the product needs to know."""

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
    def sandbox_workloads(self) -> bool:
        return False


class NvidiaDriverSeen(DriverObjectSeen, frozen=True):
    spec: DriverSpec = DriverSpec()

    @property
    def kind(self) -> str:
        return "NVIDIADriver"

    @property
    def driver(self) -> DriverSpec:
        return self.spec


class ClusterPolicySeen(DriverObjectSeen, frozen=True):
    spec: PolicySpec = PolicySpec()

    @property
    def kind(self) -> str:
        return "ClusterPolicy"

    @property
    def driver(self) -> DriverSpec:
        return self.spec.driver

    @property
    def uses_driver_crd(self) -> bool:
        return bool(self.spec.driver.use_nvidia_driver_crd)

    @property
    def sandbox_workloads(self) -> bool:
        return bool(self.spec.sandbox_workloads and self.spec.sandbox_workloads.enabled)
