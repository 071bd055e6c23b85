"""A GPU is slowed by its power brake, its board or for reliability. The temperature rule covers heat.

It reads what the exporter enables: DCGM's violation times, DCGM's reason bits, or the exporter's own counter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import Problem, Severity
from health.rules.gpus.base import GpuFacts, devices_at_least, measured
from health.telemetry.metrics import SLOWED_BY, SLOWING_BITS
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import grown_by, still_grows
from wording.reports import EvidenceItem, fit

# Being at the limit of its power is how a training GPU should be (Z28): `throttled_power` is no reason here.
REASONS = {
    "throttled_thermal": "it is too hot",
    "throttled_board": "its board is at a limit (power brake, supply)",
    "throttled_reliability": "its voltage is at a limit",
}

CLOCK_REASONS, CLOCK_EVENTS = "clock_reasons", "clock_events"
EVERY_BIT = 0x1FF  # that there is: a number beyond is DCGM's word for “not known”


@dataclass(frozen=True)
class Throttled:
    key: ClassVar[str] = "gpu-throttled"
    title: ClassVar[str] = "GPU slowed down"
    after: ClassVar[timedelta] = timedelta(minutes=10)
    metrics: ClassVar[tuple[str, ...]] = (*REASONS, CLOCK_REASONS, CLOCK_EVENTS)
    steps: ClassVar[tuple[str, ...]] = (
        "Check the current reason: nvidia-smi -q -d PERFORMANCE on the node.",
        "By heat: check the air, as for a GPU that is too hot.",
        "By its board or the power brake: check the power supplies of the chassis in its BMC.",
    )

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        return {
            *(
                place
                for reason in REASONS
                for place in grown_by(snapshot, reason, 1)
                if still_grows(snapshot, reason, place)
            ),
            *devices_at_least(snapshot, CLOCK_EVENTS, 1),
            *_slowed_now(snapshot),
        }

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        grown = {key: gpu.grown[key] for key in REASONS if key in gpu.grown}
        amounts = {key: each.amount for key, each in grown.items() if each.amount and each.goes_on}
        events = {key: number for key, number in gpu.parts.get(CLOCK_EVENTS, {}).items() if key in SLOWED_BY}
        bits = _bits_of(gpu.now.get(CLOCK_REASONS, 0.0))
        now = [key for key, each in SLOWED_BY.items() if bits & each.bit]
        if not (amounts or events or now):
            return None
        reasons = {*(REASONS[key] for key in amounts), *(SLOWED_BY[key].reason for key in (*now, *events))}
        return Problem(
            severity=Severity.WARNING,
            title=fit("{} is slowed down", gpu.name),
            summary="Its jobs are slower. A job on several GPUs is as slow as this one.",
            evidence=(
                *(measured(key, amount) for key, amount in amounts.items()),
                *(EvidenceItem(f"Events of {key}", number) for key, number in events.items()),
                *((EvidenceItem("Reasons now", ", ".join(now)),) if now else ()),
            ),
            causes=tuple(f"{reason[:1].upper()}{reason[1:]}." for reason in sorted(reasons)),
            facts={
                **amounts,
                **{f"{CLOCK_EVENTS}:{key}": number for key, number in events.items()},
                CLOCK_REASONS: now,
            },
            identity=" and ".join(sorted(reasons)),
        )


def _bits_of(value: float) -> int:
    return int(value) if 0 <= value <= EVERY_BIT else 0


def _slowed_now(snapshot: TelemetrySnapshot) -> Iterable[int]:
    column = snapshot.columns.get(CLOCK_REASONS)
    if column is None:
        return ()
    return [place for place, value in enumerate(column.values) if value >= 1 and _bits_of(value) & SLOWING_BITS]
