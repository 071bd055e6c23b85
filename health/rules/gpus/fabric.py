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

from health.rules.base import Severity, Wrong
from health.rules.gpus.base import GpuFacts, at_least
from health.telemetry.snapshot import TelemetrySnapshot
from wording.lists import names

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
CONFIGURATION, FOUR_BITS, INCORRECT = 8, 0b1111, 2  # from 2 on it says what is incorrect


@dataclass(frozen=True)
class Fabric:
    key: ClassVar[str] = "gpu-fabric"
    title: ClassVar[str] = "NVLink fabric not ready"
    after: ClassVar[timedelta] = timedelta(minutes=10)  # training takes minutes after a boot
    metrics: ClassVar[tuple[str, ...]] = (STATUS, HEALTH)

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {*at_least(snapshot, STATUS, IN_PROGRESS), *at_least(snapshot, HEALTH, 1)}

    def evaluate(self, gpu: GpuFacts) -> Wrong | None:
        status, faults = int(gpu.now.get(STATUS, SUCCESS)), faults_in(int(gpu.now.get(HEALTH, 0)))
        evidence = {key: gpu.now[key] for key in self.metrics if key in gpu.now}
        if status in (FAILURE, UNRECOGNISED):
            word = "failed" if status == FAILURE else "reports a status that DCGM does not recognise"
            return _wrong(f"{gpu.name}: the Fabric Manager {word}.", evidence, f"status {status}")
        if faults:
            return _wrong(f"{gpu.name}: its NVLink fabric reports {names(faults)}.", evidence, " ".join(faults))
        if status == IN_PROGRESS:
            return Wrong(
                Severity.WARNING,
                f"{gpu.name}: its NVLink fabric is still being set up.",
                DO,
                evidence,
                why="in progress",
                probable_cause="The Fabric Manager or the subnet manager of the fabric does not finish.",
            )
        return None


DO = (
    "Read the log of nvidia-fabricmanager on the node (journalctl -u nvidia-fabricmanager) "
    "and nvidia-smi -q, Fabric. Restart the service. If that does not help, drain and reboot "
    "the node."
)


def faults_in(mask: int) -> list[str]:
    """Returns the faults that a health mask reports."""
    found = [name for name, bit in BITS.items() if mask >> bit & FIELD == TRUE]
    return [*found, *(["incorrect configuration"] if mask >> CONFIGURATION & FOUR_BITS >= INCORRECT else [])]


def _wrong(sentence: str, evidence: Mapping[str, float], why: str) -> Wrong:
    return Wrong(
        Severity.CRITICAL,
        sentence,
        DO,
        evidence,
        why=why,
        opens_after=timedelta(0),
        probable_cause="Jobs on several GPUs fail or are slow until the fabric is ready (CUDA error 802).",
    )
