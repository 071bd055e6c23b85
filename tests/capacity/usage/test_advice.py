"""The advice for a workload: neutral, by its pattern, with the setting that would change it."""

import pytest

from capacity.usage.advice import Activity, UsePattern, advice_of
from health.telemetry.usage import GpuUse


def hours(**given: float) -> dict[GpuUse, float]:
    return dict.fromkeys(GpuUse, 0.0) | {GpuUse(use): number for use, number in given.items()}


BUSY = Activity(busy=0.9, tensor=0.5, bandwidth=0.3)


@pytest.mark.parametrize(
    ("workload", "given", "activity", "pattern", "words", "setting"),
    [
        ("", {"unallocated": 5}, Activity(), UsePattern.FREE, "No pod had", "scale-down-gpu-utilization"),
        ("Job/a", {"unmeasured": 5}, BUSY, UsePattern.NOT_MEASURED, "too few", ""),
        ("Job/a", {"used": 4, "idle": 6}, BUSY, UsePattern.IDLE, "60% of the measured hours", "activeDeadlineSeconds"),
        ("Notebook/a", {"idle": 6}, BUSY, UsePattern.IDLE, "100%", "CULL_IDLE_TIME"),
        ("Odd/a", {"idle": 6}, BUSY, UsePattern.IDLE, "Ask the owner", "requests"),
        ("Job/a", {"used": 6}, Activity(), UsePattern.NOT_MEASURED, "exclusive GPU", ""),
        ("Job/a", {"used": 6}, Activity(busy=0.1, fits="fits_eighth"), UsePattern.LOW, "an eighth", "mig"),
        ("Job/a", {"used": 6}, Activity(busy=0.1), UsePattern.LOW, "10% busy", "time-slicing"),
        ("Job/a", {"used": 6}, Activity(busy=0.1, tensor=0.3), UsePattern.NONE, "", ""),
        ("Job/a", {"used": 6}, Activity(busy=0.25, fits="fits_half"), UsePattern.SMALL_MEMORY, "half", "mig"),
        ("Job/a", {"used": 6}, Activity(busy=0.9, fits="fits_half"), UsePattern.NONE, "", ""),
        ("Job/a", {"used": 6}, Activity(busy=0.9, tensor=0.1, bandwidth=0.6), UsePattern.MEMORY_BOUND, "60%", "batch"),
        ("Job/a", {"used": 6}, BUSY, UsePattern.NONE, "", ""),
    ],
)  # fmt: skip
def test_each_pattern_has_its_advice(workload, given, activity, pattern, words, setting):
    found = advice_of(workload, hours(**given), activity)

    assert found.pattern is pattern
    assert words in found.text
    assert setting in found.setting
    assert "wast" not in found.text.lower()


SPOT = "karpenter.sh/capacity-type=spot"


@pytest.mark.parametrize(
    ("workload", "used", "spot", "pattern"),
    [
        ("Job/a", 30, SPOT, UsePattern.RESTARTABLE),
        ("RayCluster/a", 30, SPOT, UsePattern.RESTARTABLE),
        ("Job/a", 23, SPOT, UsePattern.NONE),
        ("Job/a", 30, "", UsePattern.NONE),
        ("Deployment/a", 30, SPOT, UsePattern.NONE),
    ],
)
def test_a_job_may_run_on_spot_nodes_that_its_cluster_has(workload, used, spot, pattern):
    found = advice_of(workload, hours(used=used), BUSY, spot=spot)

    assert found.pattern is pattern
    assert found.setting.startswith(f"nodeSelector {SPOT}") == (pattern is UsePattern.RESTARTABLE)
    assert advice_of(workload, hours(idle=used), BUSY, spot=spot).pattern is UsePattern.IDLE, "idle comes first"


def test_the_smallest_part_that_was_always_enough_counts():
    sums = {"memory_hours": 10.0, "fits_eighth": 9.0, "fits_quarter": 10.0, "fits_half": 10.0}

    assert Activity.of(sums).fits == "fits_quarter"
    assert Activity.of(sums | {"fits_quarter": 9.0, "fits_half": 9.0}).fits == ""
    assert Activity.of({}) == Activity()
