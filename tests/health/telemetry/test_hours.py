import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from health.telemetry.base import STALE_AFTER_S
from health.telemetry.hours import GAP_AT_MOST_S, HourTally, IdleTime, hour_of
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot

BEGUN = 1_000 * 3600.0
BOARD, OTHER, SLICE = GpuDevice("n1", 0, "GPU-0"), GpuDevice("n1", 1, "GPU-1"), GpuDevice("n1", 1, "GPU-1", "3")


def said(at: float, *devices: GpuDevice, **columns: float) -> TelemetrySnapshot:
    """Each device says the same now. NaN: not this one."""
    snapshot = TelemetrySnapshot(at, devices)
    for key, value in columns.items():
        snapshot.columns[key] = MetricColumn.empty(len(devices))
        for place in range(len(devices)):
            snapshot.columns[key].values[place] = value
            snapshot.columns[key].times[place] = at if value == value else math.nan
    return snapshot


def hour_with(*frames: TelemetrySnapshot) -> HourTally:
    tally = HourTally.begun(frames[0], now=frames[0].taken_at)
    for snapshot in frames[1:]:
        tally = tally.carried(snapshot.devices)
        tally.add(snapshot, now=snapshot.taken_at)
    return tally


def test_time_under_load_is_its_exposure():
    idle, busy = (
        {"gpu_utilisation_ratio": value, "temperature_celsius": warm, "power_watts": 100 * warm}
        for value, warm in ((0.0, 40.0), (0.5, 60.0))
    )
    (sums,) = hour_with(said(BEGUN, BOARD), said(BEGUN + 60, BOARD, **idle), said(BEGUN + 180, BOARD, **busy)).rows()

    assert (sums.seen_s, sums.busy_s, sums.utilisation) == (180, 120, pytest.approx(0.5 * 120 / 180))
    assert (sums.temperature, sums.temperature_max) == (pytest.approx((60 * 40 + 120 * 60) / 180), 60)
    assert sums.power_watts == pytest.approx(100 * sums.temperature)


def test_what_nobody_says_is_null_and_not_nought():
    (sums,) = hour_with(said(BEGUN, BOARD), said(BEGUN + 60, BOARD, sm_clock_mhz=0.0)).rows()

    assert sums.seen_s == 60
    assert (sums.busy_s, sums.utilisation, sums.temperature, sums.power_watts, sums.memory_max_mib) == (None,) * 5
    assert sums.xids is None


def test_no_xid_is_none_and_not_null():
    (sums,) = hour_with(said(BEGUN, BOARD), said(BEGUN + 60, BOARD, xid=0.0)).rows()

    assert sums.xids == 0


def test_a_gap_and_a_sample_that_is_old_are_in_no_sum():
    late = BEGUN + 30 * 60
    (sums,) = hour_with(said(BEGUN, BOARD), said(late, BOARD, temperature_celsius=50.0)).rows()
    old = said(late, BOARD, temperature_celsius=50.0)
    old.columns["temperature_celsius"].times[0] = late - STALE_AFTER_S - 1

    assert sums.seen_s == GAP_AT_MOST_S
    assert list(hour_with(said(BEGUN, BOARD), old).rows()) == []


def test_what_has_telemetry_after_the_hour_is_not_in_it():
    warm = {"temperature_celsius": 50.0}
    end = BEGUN + 3600
    tally = hour_with(said(end - 90, BOARD), said(end - 30, BOARD, **warm), said(end + 60, BOARD, **warm))

    assert next(tally.rows()).seen_s == 90
    tally.add(said(end + 120, BOARD, **warm), now=end + 120)
    assert next(tally.rows()).seen_s == 90


def test_under_mig_the_usual_utilisation_says_nothing():
    usual = said(BEGUN + 60, OTHER, SLICE, gpu_utilisation_ratio=0.9)
    engine = said(BEGUN + 60, OTHER, SLICE, gpu_utilisation_ratio=0.0, engine_active_ratio=0.7)

    assert [sums.utilisation for sums in hour_with(said(BEGUN, OTHER, SLICE), usual).rows()] == [None, None]
    assert [sums.utilisation for sums in hour_with(said(BEGUN, OTHER, SLICE), engine).rows()] == [0.7, 0.7]


def test_xids_are_at_least_so_many_and_the_first_was_there_before():
    frames = [said(BEGUN + 60 * number, BOARD, xid=xid) for number, xid in enumerate((31.0, 31.0, 79.0, 0.0, 31.0))]
    tally = HourTally.begun(frames[0], now=BEGUN)
    for snapshot in frames:
        tally.add(snapshot, now=snapshot.taken_at)

    assert next(tally.rows()).xids == 2


def test_a_counter_is_its_increase_and_begins_anew_with_the_driver():
    values = (90.0, 90.0, 93.0, 1.0, 2.0)
    frames = [
        said(BEGUN + 60 * number, BOARD, ecc_corrected=value, throttled_thermal=value, throttled_board=0.0)
        for number, value in enumerate(values)
    ]
    tally = HourTally.begun(frames[0], now=BEGUN)
    for snapshot in frames:
        tally.add(snapshot, now=snapshot.taken_at)

    sums = next(tally.rows())

    assert (sums.ecc_corrected, sums.nvlink_errors) == (4, None)
    assert sums.throttled == pytest.approx(2 / 3)  # it grew in two of three minutes; the fourth is a new beginning


def test_a_device_that_goes_keeps_what_it_did_and_one_that_comes_begins_with_nothing():
    warm = {"temperature_celsius": 50.0}
    tally = hour_with(said(BEGUN, BOARD), said(BEGUN + 60, BOARD, **warm), said(BEGUN + 120, OTHER, **warm))

    assert {sums.device: sums.seen_s for sums in tally.rows()} == {BOARD: 60, OTHER: 60}


LOOKS = some.lists(
    some.tuples(
        some.floats(1, 600), some.sampled_from([(BOARD,), (OTHER,), (BOARD, OTHER), (OTHER, SLICE), ()]),
        some.sampled_from([math.nan, 0.0, 0.005, 0.3, 1.0]),
    ),
    max_size=20,
)  # fmt: skip


@given(looks=LOOKS)
def test_whatever_comes_and_goes_nothing_is_counted_twice(looks):
    at, frames = BEGUN, [said(BEGUN)]
    for gap, devices, busy in looks:
        at += gap
        frames.append(said(at, *devices, gpu_utilisation_ratio=busy, temperature_celsius=busy))
    tally = hour_with(*frames)

    most = sum(min(later.taken_at - before.taken_at, GAP_AT_MOST_S) for before, later in pairwise(frames))
    keys = [sums.device.key for sums in tally.rows()]
    assert len(keys) == len(set(keys))
    for sums in tally.rows():
        assert 0 < sums.seen_s <= most + 1e-6
        assert sums.busy_s is None or 0 <= sums.busy_s <= sums.seen_s + 1e-6
        assert sums.utilisation is None or 0 <= sums.utilisation <= 1 + 1e-9


def test_an_hour_begins_at_its_hour():
    assert hour_of(BEGUN + 3599.9) == BEGUN
    assert hour_of(BEGUN + 3600) == BEGUN + 3600


def idle_time(*utilisation: float, minutes: float = 1) -> IdleTime:
    """The idle time of a board whose samples are so many minutes apart. NaN: none."""
    frames = [
        said(BEGUN + 60 * minutes * number, BOARD, gpu_utilisation_ratio=value)
        for number, value in enumerate((0.0, *utilisation))
    ]
    return hour_with(*frames).idle_times()["n1"]["GPU-0"]


@pytest.mark.parametrize(
    ("utilisation", "minutes", "idle"),
    [
        ((0.0, 0.0, 0.0), 1, IdleTime(120)),  # from the first sample on
        ((0.0, 0.05, 0.0, 0.049), 1, IdleTime(120, 120)),
        ((0.9,), 1, IdleTime(0, 0)),
        ((0.0, 0.0, math.nan, 0.0), 1, IdleTime(60)),  # no data is no idleness
        ((math.nan, math.nan), 1, IdleTime(0)),
        ((0.9, math.nan, 0.0), 1, IdleTime(60, 120)),
        ((0.0, 0.0), GAP_AT_MOST_S / 60 + 1, IdleTime(0)),  # nothing was measured between the samples
    ],
)
def test_idle_time_is_measured_without_a_gap_since_the_last_load(utilisation, minutes, idle):
    assert idle_time(*utilisation, minutes=minutes) == idle


def test_a_board_is_idle_as_long_as_its_busiest_slice():
    board, first, second = OTHER, SLICE, GpuDevice("n1", 1, "GPU-1", "4")
    tally = HourTally.begun(said(BEGUN, board, first, second), now=BEGUN)
    for minute in range(1, 5):
        snapshot = said(BEGUN + 60 * minute, board, first, second, engine_active_ratio=0.0)
        if minute == 2:
            snapshot.columns["engine_active_ratio"].values[2] = 0.5
        tally.add(snapshot, now=snapshot.taken_at)

    assert tally.idle_times() == {"n1": {"GPU-1": IdleTime(120, 120)}}
