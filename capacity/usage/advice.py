"""Advice for a workload by the pattern of its activity, with the setting that would change it. Pure.

Thresholds: KempnerInstitute/kempnerpulse docs/classification.md. It also uses SM activity, PCIe and copy engines,
which are not recorded, so that patterns that need them get no advice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from health.telemetry.usage import GpuUse

ENOUGH_HOURS = 1.0  # measured GPU-hours; with less, nothing is advised
MOSTLY = 0.5  # share of measured hours that were idle. Ours
LOW, LITTLE, MEMORY_ACTIVE = 0.15, 0.30, 0.40
SLICES: Mapping[str, str] = {"fits_eighth": "an eighth", "fits_quarter": "a quarter", "fits_half": "half"}
MIG = "nvidia.com/mig-…"


class UsePattern(StrEnum):
    NOT_MEASURED = "not_measured"
    IDLE = "idle"
    LOW = "low"
    SMALL_MEMORY = "small_memory"
    MEMORY_BOUND = "memory_bound"
    RESTARTABLE = "restartable"  # a Job that spot nodes of its cluster could run
    NONE = "none"  # no pattern with advice
    FREE = "free"  # no pod had the hours


# The setting that returns the GPUs of a workload, by the kind of its controller.
RETURNS: Mapping[str, str] = {
    "Deployment": "spec.replicas, or minReplicas of its autoscaler",
    "ReplicaSet": "spec.replicas, or minReplicas of its autoscaler",
    "StatefulSet": "spec.replicas",
    "Job": "spec.activeDeadlineSeconds",
    "CronJob": "spec.suspend, or activeDeadlineSeconds of its jobTemplate",
    "JobSet": "spec.suspend, or activeDeadlineSeconds of its Job templates",
    "LeaderWorkerSet": "spec.replicas, or minReplicas of its autoscaler",
    "PyTorchJob": "spec.runPolicy.activeDeadlineSeconds",
    "MPIJob": "spec.runPolicy.activeDeadlineSeconds",
    "RayJob": "spec.shutdownAfterJobFinishes, and spec.activeDeadlineSeconds",
    "TrainJob": "spec.suspend, and spec.activeDeadlineSeconds",
    "RayService": "minReplicas of its worker groups, and autoscalerOptions.idleTimeoutSeconds",
    "RayCluster": "minReplicas of its worker groups, and autoscalerOptions.idleTimeoutSeconds",
    "Notebook": "ENABLE_CULLING and CULL_IDLE_TIME of the notebook controller",
}


ENOUGH_FOR_SPOT = 24.0  # GPU-hours; with fewer, a move is not worth it. Ours
# The setting with which pods of a kind are made again after their node was taken away.
RESTARTS: Mapping[str, str] = {
    "Job": "spec.backoffLimit and spec.podFailurePolicy",
    "CronJob": "spec.backoffLimit and spec.podFailurePolicy of its jobTemplate",
    "JobSet": "spec.failurePolicy.maxRestarts",
    "PyTorchJob": "spec.runPolicy.backoffLimit",
    "RayJob": "spec.backoffLimit",
    "RayCluster": "the worker group's own nodeSelector, without its head",
}


@dataclass(frozen=True)
class Activity:
    """Weighted means over the GPU-hours that a workload had alone. None: not exported, or no such hour."""

    busy: float | None = None
    tensor: float | None = None
    bandwidth: float | None = None
    fits: str = ""  # the smallest part of a card that was enough in every hour; blank: none, or unknown
    energy_kwh: float | None = None  # in the measured hours alone
    energy_gpu_hours: float = 0.0  # with known power

    @classmethod
    def of(cls, sums: Mapping[str, float]) -> "Activity":
        hours = sums.get("memory_hours", 0.0)
        fits = next((name for name in SLICES if hours and sums[name] >= hours * (1 - 1e-9)), "")
        means = {
            name: sums[f"{name}_sum"] / sums[f"{name}_hours"] if sums.get(f"{name}_hours") else None
            for name in ("busy", "tensor", "bandwidth")
        }
        measured = sums.get("energy_hours", 0.0)
        energy = sums["energy_kwh"] if measured else None
        return cls(**means, fits=fits, energy_kwh=energy, energy_gpu_hours=measured)


@dataclass(frozen=True)
class Advice:
    pattern: UsePattern
    text: str = ""  # blank: no advice
    setting: str = ""


def advice_of(workload: str, hours: Mapping[GpuUse, float], activity: Activity, *, spot: str = "") -> Advice:
    """Returns the advice. `spot` is the label of spot nodes in its cluster; blank: it has none, or the workload has."""
    measured = hours[GpuUse.USED] + hours[GpuUse.IDLE]
    if not measured + hours[GpuUse.UNMEASURED]:
        return Advice(
            UsePattern.FREE,
            "No pod had these GPUs. An autoscaler removes nodes by requests, not by use.",
            "--scale-down-gpu-utilization-threshold of cluster-autoscaler, or the minimum of the node group",
        )
    if measured < ENOUGH_HOURS:
        return Advice(UsePattern.NOT_MEASURED, "Telemetry covered too few of these hours.")
    kind = workload.partition("/")[0]
    if hours[GpuUse.IDLE] >= MOSTLY * measured:
        share = hours[GpuUse.IDLE] / measured
        return Advice(
            UsePattern.IDLE,
            f"{share:.0%} of the measured hours were below 5 % busy. Ask the owner whether the GPUs can be returned.",
            RETURNS.get(kind, "the number of GPUs that it requests"),
        )
    found = _advice_by_activity(activity)
    is_worth_it = measured >= ENOUGH_FOR_SPOT and found.pattern in (UsePattern.NONE, UsePattern.NOT_MEASURED)
    return _spot_advice(kind, spot) if spot and kind in RESTARTS and is_worth_it else found


def _spot_advice(kind: str, spot: str) -> Advice:
    return Advice(
        UsePattern.RESTARTABLE,
        f"Its cluster has spot nodes. A {kind} that writes checkpoints can run there; its pods may end at any time.",
        f"nodeSelector {spot}, with {RESTARTS[kind]}",
    )


def _advice_by_activity(found: Activity) -> Advice:
    if found.busy is None:
        return Advice(UsePattern.NOT_MEASURED, "No hour with an exclusive GPU is recorded.")
    ratios = [each for each in (found.busy, found.tensor, found.bandwidth) if each is not None]
    slice_text = f" In every hour, {SLICES[found.fits]} of the card's memory was enough." if found.fits else ""
    if max(ratios) < LOW:
        setting = f"a MIG slice ({MIG})" if found.fits else "replicas of time-slicing"
        return Advice(UsePattern.LOW, f"The GPU was {found.busy:.0%} busy in the mean.{slice_text} Share it.", setting)
    if found.fits and found.busy < LITTLE:
        return Advice(
            UsePattern.SMALL_MEMORY, f"{found.busy:.0%} busy in the mean.{slice_text}", f"a MIG slice ({MIG})"
        )
    if (found.bandwidth or 0.0) >= MEMORY_ACTIVE and (found.tensor or 0.0) < LITTLE:
        text = f"Memory bandwidth was {found.bandwidth:.0%} used. More compute would not help: batch or quantise."
        return Advice(UsePattern.MEMORY_BOUND, text, "batch size and number format of the program")
    return Advice(UsePattern.NONE)
