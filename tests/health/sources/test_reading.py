import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.sources.readings import (
    MetricReading,
    ReadingState,
    Standing,
    nothing_read,
    read_device,
    read_metric,
    utilisation,
)
from health.telemetry.base import FORGET_AFTER_S, STALE_AFTER_S
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot

NOW = 1_800_000_000.0
KEY = "temperature_celsius"
ANSWERING = Standing(has_source=True, exported=frozenset({KEY}))
SILENT = Standing(has_source=True, is_silent=True, silent_since=NOW - 300, exported=frozenset({KEY}))
NAN = math.nan


def read(value: float, age_s: float, standing: Standing = ANSWERING, key: str = KEY) -> MetricReading:
    return read_metric(key, value, NOW - age_s, standing, now=NOW)


def test_zero_is_a_value():
    assert read(0.0, 5) == MetricReading(ReadingState.FRESH, 0.0, NOW - 5)


def test_an_old_sample_is_stale_since_it_was_taken():
    assert read(61.0, 180) == MetricReading(ReadingState.STALE, 61.0, NOW - 180, NOW - 180)


def test_what_its_source_has_no_series_of_is_not_exported():
    assert read(NAN, NAN, key="pcie_replays") == MetricReading(ReadingState.NOT_EXPORTED)


def test_what_it_has_of_others_it_never_had_of_this_one():
    assert read(NAN, NAN) == MetricReading(ReadingState.NEVER)


def test_a_series_that_went_leaves_what_it_said_last():
    standing = Standing(has_source=True)

    assert read(61.0, 180, standing).state is ReadingState.STALE


def test_of_a_silent_source_there_is_what_it_said_before_and_since_when_it_is_silent():
    assert read(61.0, 20, SILENT) == MetricReading(ReadingState.SOURCE_SILENT, 61.0, NOW - 20, NOW - 300)
    assert read(NAN, NAN, SILENT) == MetricReading(ReadingState.SOURCE_SILENT, since=NOW - 300)


def test_without_a_source_there_is_no_value():
    assert read(61.0, 5, Standing(has_source=False)) == MetricReading(ReadingState.NO_SOURCE)


@pytest.mark.parametrize("age_s", [-STALE_AFTER_S - 1, FORGET_AFTER_S + 1, -1e300, 1e300])
def test_a_time_that_cannot_be_is_not_believed(age_s):
    assert read(61.0, age_s) == MetricReading(ReadingState.NEVER)


@given(
    value=st.floats(),
    at=st.one_of(st.floats(), st.floats(min_value=NOW - 2e5, max_value=NOW + 2e3)),
    has_source=st.booleans(),
    is_silent=st.booleans(),
    key=st.sampled_from(sorted(METRICS)),
    is_mig=st.booleans(),
)
def test_what_is_fresh_is_a_number_of_now_and_what_is_none_says_none(value, at, has_source, is_silent, key, is_mig):
    standing = Standing(has_source, is_silent=is_silent, exported=frozenset({KEY}))

    found = read_metric(key, value, at, standing, now=NOW, is_mig=is_mig)

    if found.is_fresh:
        assert math.isfinite(value)
        assert abs(NOW - at) <= STALE_AFTER_S
        assert has_source
        assert not is_silent
    assert (found.value is None) == (found.sampled_at is None)
    assert found.value is None or math.isfinite(found.value)


def a_device(is_mig: bool, **values: float):
    snapshot = TelemetrySnapshot(NOW, [GpuDevice("gpu-1", 0, "GPU-a")])
    for key, value in values.items():
        snapshot.columns[key] = MetricColumn(array("d", [value]), array("d", [NOW - 5]))
    standing = Standing(has_source=True, exported=frozenset(values))
    return read_device(snapshot, 0, standing, now=NOW, is_mig=is_mig)


def test_under_mig_the_usual_utilisation_is_none_whatever_is_exported():
    readings = a_device(is_mig=True, gpu_utilisation_ratio=0.0, engine_active_ratio=0.7)

    assert readings["gpu_utilisation_ratio"] == MetricReading(ReadingState.NOT_APPLICABLE)
    assert utilisation(readings) == ("engine_active_ratio", readings["engine_active_ratio"])


def test_under_mig_without_the_engines_it_is_unknown():
    key, reading = utilisation(a_device(is_mig=True, gpu_utilisation_ratio=0.0))

    assert (key, reading) == ("engine_active_ratio", MetricReading(ReadingState.NOT_EXPORTED))


def test_the_engines_stand_in_where_the_usual_one_is_not_exported():
    assert utilisation(a_device(is_mig=False, engine_active_ratio=0.7))[1].value == 0.7
    assert utilisation(a_device(is_mig=False, gpu_utilisation_ratio=0.0, engine_active_ratio=0.7))[1].value == 0.0


def test_the_engines_stand_in_where_the_usual_one_is_exported_no_more():
    """Of a day what it said last is kept, and idle GPUs are judged by the engine's at once."""
    readings = dict(a_device(is_mig=False, gpu_utilisation_ratio=0.9, engine_active_ratio=0.0))
    standing = Standing(has_source=True, exported=frozenset(readings))
    long_ago = read_metric("gpu_utilisation_ratio", 0.9, NOW - 3600, standing, now=NOW)
    longer_ago = read_metric("engine_active_ratio", 0.1, NOW - 7200, standing, now=NOW)
    assert long_ago.state is ReadingState.STALE

    readings["gpu_utilisation_ratio"] = long_ago
    assert utilisation(readings) == ("engine_active_ratio", readings["engine_active_ratio"])

    readings["engine_active_ratio"] = longer_ago
    assert utilisation(readings) == ("gpu_utilisation_ratio", long_ago)


def test_a_device_that_no_frame_has_is_never_fresh():
    assert {reading.state for reading in nothing_read(ANSWERING, now=NOW).values()} == {
        ReadingState.NEVER,
        ReadingState.NOT_EXPORTED,
    }
