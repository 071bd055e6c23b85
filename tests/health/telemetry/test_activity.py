"""The sums of a GPU's activity in an hour."""

import pytest

from health.telemetry.activity import activity_of
from health.telemetry.hours import GpuHourSums
from health.telemetry.snapshot import GpuDevice

NOTHING = dict.fromkeys(
    ("busy_s", "utilisation", "tensor", "bandwidth", "temperature", "temperature_max", "power_watts", "memory_max_mib",
     "xids")
)  # fmt: skip


def sums(gi_id: str = "", **given) -> GpuHourSums:
    return GpuHourSums(GpuDevice("n1", 0, "GPU-0", gi_id), 1800.0, **NOTHING | given)


def test_ratios_are_weighted_by_hours_and_energy_is_power_times_time():
    found = activity_of(sums(utilisation=0.5, bandwidth=0.2, power_watts=700.0), 80_000)

    assert found == pytest.approx(
        {"busy_hours": 0.5, "busy_sum": 0.25, "bandwidth_hours": 0.5, "bandwidth_sum": 0.1, "energy_hours": 0.5,
         "energy_kwh": 0.35}
    )  # fmt: skip


@pytest.mark.parametrize(("peak", "fits"), [(8_000, "eighth quarter half"), (9_000, "quarter half"), (40_000, "")])
def test_the_parts_of_a_card_that_were_enough_leave_room_above_the_peak(peak, fits):
    found = activity_of(sums(memory_max_mib=peak), 80_000)

    assert found["memory_hours"] == 0.5
    assert " ".join(name for name in ("eighth", "quarter", "half") if found[f"fits_{name}"]) == fits


def test_what_is_not_exported_is_in_no_sum_and_a_slice_has_no_power_of_its_own():
    assert activity_of(sums(), 80_000) == {}
    assert activity_of(sums(memory_max_mib=1.0), None) == {}
    assert set(activity_of(sums("1", utilisation=0.5, power_watts=700.0, memory_max_mib=1.0), 80_000)) == {
        "busy_hours", "busy_sum",
    }  # fmt: skip
