import math

import pytest

from health.sources.history import PLOTTED
from health.telemetry.metrics import METRICS
from health.telemetry.minutes import BLOCK_MINUTES, NUMBERS_PER_UNIT, MinuteBlock, block_begin, samples_of
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot
from tests.health.telemetry.test_hours import BEGUN, BOARD, OTHER, SLICE, said

MINUTE = 60


def block_with(*frames: TelemetrySnapshot) -> MinuteBlock:
    block = MinuteBlock(BEGUN)
    for snapshot in frames:
        at = snapshot.taken_at
        block.add([device.key for device in snapshot.devices], samples_of(snapshot, now=at), at=at)
    return block


def test_a_minute_without_a_sample_is_neither_zero_nor_the_one_before():
    block = block_with(
        said(BEGUN, BOARD, temperature_celsius=61.5), said(BEGUN + 2 * MINUTE, BOARD, temperature_celsius=0.0)
    )

    line = block.line("temperature_celsius", BOARD.key)
    assert (line[0], line[2]) == (61.5, 0.0)
    assert [place for place, value in enumerate(line) if value != value] == [1, *range(3, BLOCK_MINUTES)]


def test_a_sample_older_than_a_minute_is_none_of_this_minute():
    snapshot = said(BEGUN, BOARD, temperature_celsius=61.0)

    assert samples_of(snapshot, now=BEGUN + 60)["temperature_celsius"][0] == 61
    assert samples_of(snapshot, now=BEGUN + 61) == {}


@pytest.mark.parametrize(
    ("metric", "value", "kept"),
    [
        ("gpu_utilisation_ratio", 0.876, 0.876), ("gpu_utilisation_ratio", 0.0, 0.0),
        ("memory_used_mib", 81_000, 80_992), ("temperature_celsius", -12.34, -12.3), ("power_watts", 699.8, 700),
        ("power_watts", 10_000, 10_000),
        ("sm_clock_mhz", 1980, 1980), ("xid", 79, 79),
    ],
)  # fmt: skip
def test_a_value_comes_back_as_fine_as_a_plot_needs_it(metric, value, kept):
    assert block_with(said(BEGUN, BOARD, **{metric: value})).line(metric, BOARD.key)[0] == kept


def test_a_value_that_no_number_can_say_is_no_sample():
    assert block_with(said(BEGUN, BOARD, memory_used_mib=2.0**20)).line("memory_used_mib", BOARD.key) is None


def test_a_board_that_is_swapped_is_another_line():
    swapped = GpuDevice("n1", 0, "GPU-new")

    block = block_with(
        said(BEGUN, BOARD, power_watts=700.0), said(BEGUN + MINUTE, swapped, power_watts=90.0, sm_clock_mhz=1.0)
    )

    old, new = (block.line("power_watts", device.key) for device in (BOARD, swapped))
    assert (old[0], math.isnan(old[1])) == (700, True)
    assert (math.isnan(new[0]), new[1]) == (True, 90)
    assert block.is_whole()


def test_the_engine_is_kept_only_where_the_usual_utilisation_is_not_said():
    both = said(BEGUN, BOARD, gpu_utilisation_ratio=0.5, engine_active_ratio=0.4)
    neither_usual = said(BEGUN, BOARD, engine_active_ratio=0.4)
    cut = said(BEGUN, OTHER, SLICE, gpu_utilisation_ratio=0.0, engine_active_ratio=0.4)

    assert set(samples_of(both, now=BEGUN)) == {"gpu_utilisation_ratio"}
    assert set(samples_of(neither_usual, now=BEGUN)) == {"engine_active_ratio"}
    assert set(samples_of(cut, now=BEGUN)) == {"engine_active_ratio"}


def test_blocks_begin_at_the_quarters_of_an_hour():
    assert [block_begin(BEGUN + minutes * MINUTE) - BEGUN for minutes in (0, 14.9, 15, 59)] == [0, 0, 900, 2700]


def test_every_value_that_a_metric_can_have_has_a_number():
    lacking = {
        metric
        for metric, per_unit in NUMBERS_PER_UNIT.items()
        if metric != "memory_used_mib" and not -32768 < round(METRICS[metric].most * per_unit) < 32768
    }

    assert lacking == set()
    assert set(NUMBERS_PER_UNIT) - {"engine_active_ratio", "xid"} <= set(PLOTTED)
