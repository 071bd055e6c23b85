"""The NVLink fabric of a GPU is not ready: its Fabric Manager failed, or the fabric reports a fault. Off by default.

CUDA then fails with error 802 (system not yet initialized). Sources: NVIDIA/DCGM, dcgm_structs.h:
dcgmFabricManagerStatus_t; docs.nvidia.com/deploy/nvml-api, group__nvmlFabricDefs. Each field of the health mask is 0
(not supported), 1 (true) or 2 (false). "Not started" is no fault: a GPU that needs no Fabric Manager may report it
(aws/eks-node-monitoring-agent).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, devices_at_least, measured
from health.rules.steps import DRAIN, REPLACE, UNCORDON
from health.telemetry.snapshot import TelemetrySnapshot
from wording.lists import names
from wording.reports import EvidenceItem, fit

STATUS, HEALTH = "fabric_manager_status", "fabric_health"
IN_PROGRESS, SUCCESS, FAILURE, UNRECOGNISED = 2, 3, 4, 5
STATUSES: Mapping[int, str] = {
    0: "not supported", 1: "not started", 2: "in progress", 3: "success", 4: "failure", 5: "unrecognised",
    6: "NVML is too old",
}  # fmt: skip
BITS: Mapping[str, int] = {  # of each field of the mask its lowest
    "degraded bandwidth": 0,
    "route recovery": 2,
    "unhealthy route": 4,
    "access timeout recovery": 6,
}
TRUE, FIELD = 1, 0b11
CONFIGURATION, FOUR_BITS, INCORRECT = 8, 0b1111, 2  # a value from 2 on names the incorrect part


@dataclass(frozen=True)
class Fabric:
    key: ClassVar[str] = "gpu-fabric"
    title: ClassVar[str] = "NVLink fabric not ready"
    after: ClassVar[timedelta] = timedelta(minutes=10)  # training takes minutes after a boot
    metrics: ClassVar[tuple[str, ...]] = (STATUS, HEALTH)
    steps: ClassVar[tuple[str, ...]] = (
        "Read journalctl -u nvidia-fabricmanager on the node, and nvidia-smi -q, Fabric.",
        "Compare the versions of the driver and the Fabric Manager. They must be equal.",
        "When nothing uses the GPUs, restart nvidia-fabricmanager.",
        DRAIN,
        "Reboot the node.",
        REPLACE,
        UNCORDON,
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {*devices_at_least(snapshot, STATUS, IN_PROGRESS), *devices_at_least(snapshot, HEALTH, 1)}

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        status, faults = int(gpu.now.get(STATUS, SUCCESS)), faults_in(int(gpu.now.get(HEALTH, 0)))
        if status in (FAILURE, UNRECOGNISED):
            failed = "failed" if status == FAILURE else "has a status that DCGM does not recognise"
            return self._problem(gpu, f"Its Fabric Manager {failed}.", f"status {status}")
        if faults:
            return self._problem(gpu, f"Its NVLink fabric reports {names(faults)}.", " ".join(faults))
        if status == IN_PROGRESS:
            return self._problem(gpu, "Its NVLink fabric is still being set up.", "in progress")
        return None

    def _problem(self, gpu: GpuFacts, summary: str, identity: str) -> Problem:
        is_slow = identity == "in progress"
        facts = {key: gpu.now[key] for key in self.metrics if key in gpu.now}
        status = gpu.now.get(STATUS)
        says = STATUSES.get(int(status), str(int(status))) if status is not None else ""
        return Problem(
            severity=Severity.WARNING if is_slow else Severity.CRITICAL,
            title=fit("NVLink fabric of {} is not ready", gpu.name),
            summary=summary,
            evidence=(
                *((EvidenceItem("Fabric Manager", says),) if says else ()),
                *((measured(HEALTH, int(gpu.now[HEALTH])),) if HEALTH in gpu.now else ()),
                EvidenceItem("Effect", "Jobs on several GPUs fail or are slow (CUDA error 802)."),
            ),
            causes=("The Fabric Manager or the fabric's subnet manager does not finish.",) if is_slow else (),
            facts=facts,
            identity=identity,
            opens_after=None if is_slow else timedelta(0),
        )


def faults_in(mask: int) -> list[str]:
    """Returns the faults that a health mask reports."""
    found = [name for name, bit in BITS.items() if mask >> bit & FIELD == TRUE]
    return [*found, *(["incorrect configuration"] if mask >> CONFIGURATION & FOUR_BITS >= INCORRECT else [])]
