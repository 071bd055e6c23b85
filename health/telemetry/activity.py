"""The activity of a workload's GPUs in an hour, as sums that add up over hours and GPUs. Pure.

Only GPUs that one workload had alone are counted: the activity of a shared GPU cannot be split. The slices of a board
repeat its power, and their memory is not compared with a card.
"""

from collections.abc import Mapping

from health.telemetry.hours import HOUR_S, GpuHourSums

ROOM = 1.2  # times the peak that a smaller slice must have. Ours
FITS: Mapping[str, float] = {"fits_eighth": 1 / 8, "fits_quarter": 1 / 4, "fits_half": 1 / 2}  # of a card's memory


def activity_of(sums: GpuHourSums, card_mib: int | None) -> dict[str, float]:
    """Returns the sums of one GPU in one hour. Ratios are weighted by hours; what is not exported is in no sum."""
    hours = sums.seen_s / HOUR_S
    found: dict[str, float] = {}
    for name, value in (("busy", sums.utilisation), ("tensor", sums.tensor), ("bandwidth", sums.bandwidth)):
        if value is not None:
            found[f"{name}_hours"], found[f"{name}_sum"] = hours, hours * value
    if sums.device.gi_id:
        return found
    if sums.memory_max_mib is not None and card_mib:
        found["memory_hours"] = hours
        needed = sums.memory_max_mib * ROOM / card_mib
        found |= {name: hours if needed <= part else 0.0 for name, part in FITS.items()}
    if sums.power_watts is not None:
        found["energy_hours"], found["energy_kwh"] = hours, hours * sums.power_watts / 1000
    return found
