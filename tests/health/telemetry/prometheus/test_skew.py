"""A Prometheus whose clock is not ours: its samples are as old as they are, whatever time it says that they are of."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.sources.readings import ReadingState, Standing, read_metric
from health.telemetry import promql
from health.telemetry.base import SKEW_S, STALE_AFTER_S
from health.telemetry.identity import Whereabouts
from health.telemetry.prometheus.answers import LabelledSample, vector
from health.telemetry.prometheus.source import Prometheus
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import growth
from tests.health.telemetry.prometheus.a_prometheus import Playing

NOW = 1_800_000_000.0
WHERE = Whereabouts(frozenset({"gpu-1"}))
HOURS = 12 * 3600.0
SKEWS = st.floats(-HOURS, HOURS) | st.floats(-2 * SKEW_S, 2 * SKEW_S)
AGES = st.floats(0, 3 * STALE_AFTER_S).filter(lambda age: abs(age - STALE_AFTER_S) > 0.01)
METRICS = {
    "DCGM_FI_DEV_GPU_TEMP": 61, "DCGM_FI_DEV_XID_ERRORS": 0, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 7,
    "DCGM_FI_DEV_THERMAL_VIOLATION": 1000,
}  # fmt: skip


@dataclass
class Answering:
    """In place of a `Client`: it answers at once."""

    playing: Playing

    def ask(self, _path: str, form: Mapping[str, str]) -> bytes:
        result = self.playing.result(form["query"])
        return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()

    def query(self, expression: str) -> list[LabelledSample]:
        return vector(self.ask("", {"query": expression}))


def asked(ages, *, skew_s: float, at: float = NOW, before: TelemetrySnapshot | None = None, waits_s: float = 0.0):
    """What a round finds at `at`, by our clock, of one that is so far ahead of it. `ages`: of each GPU's samples."""
    playing = Playing(at + skew_s)
    for number, age in enumerate(ages):
        labels = {"UUID": f"GPU-{number}", "Hostname": "gpu-1", "gpu": str(number)}
        for name, value in METRICS.items():
            playing.add(name, labels, value, age_s=age)
    clock = iter([at - waits_s, at + waits_s])
    return Prometheus(Answering(playing), promql.Matchers(), WHERE, lambda: next(clock)).take(before, now=at)


def states(taken, ages, *, at: float = NOW):
    column, standing = taken.snapshot.columns["temperature_celsius"], Standing(has_source=True, exported=taken.exported)
    pairs = zip(column.values, column.times, strict=True)
    return [read_metric("temperature_celsius", *pair, standing, now=at) for pair in pairs]


@given(SKEWS, st.lists(AGES, min_size=1, max_size=4))
def test_what_is_fresh_is_fresh_and_what_is_old_is_old(skew_s, ages):
    found = states(asked(ages, skew_s=skew_s), ages)

    assert [each.state for each in found] == [
        ReadingState.FRESH if age < STALE_AFTER_S else ReadingState.STALE for age in ages
    ]
    assert [each.sampled_at for each in found] == pytest.approx([NOW - age for age in ages], abs=0.01)


@given(SKEWS.filter(lambda skew: abs(abs(skew) - SKEW_S) > 0.01))
def test_a_clock_that_is_far_off_is_one_sentence(skew_s):
    taken = asked([5.0], skew_s=skew_s)

    if abs(skew_s) < SKEW_S:
        assert (taken.notes, taken.clock_offset_s) == ((), 0)
    else:
        assert taken.notes == (
            (
                f"The server's clock is {abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} ours. Times "
                "are shown by our clock."
            ),
        )
        assert taken.clock_offset_s == pytest.approx(-skew_s, abs=0.51)


@given(st.lists(SKEWS, min_size=2, max_size=4), st.lists(st.floats(0, 20), min_size=1, max_size=3))
def test_nothing_is_found_in_a_clock_that_is_set_between_rounds(skews, ages):
    """What rules are judged by is what a clock without skew gives: the same values, of the same times."""
    snapshot = right = None
    for number, skew_s in enumerate(skews):
        at = NOW + 30 * number
        taken, true = (asked(ages, skew_s=skew, at=at, before=b) for skew, b in ((skew_s, snapshot), (0.0, right)))
        snapshot, right = taken.snapshot, true.snapshot

        assert taken.anew == true.anew == ()
        assert snapshot.past_xids == {}
        for key, column in right.columns.items():
            assert snapshot.columns[key].values == column.values
            assert list(snapshot.columns[key].times) == pytest.approx(list(column.times), abs=0.01)
        assert all(state.is_fresh for state in states(taken, ages, at=at))
    for place in range(len(ages)):
        assert growth(snapshot, "pcie_replays", place).amount == 0
        assert not growth(snapshot, "throttled_thermal", place).goes_on


@given(SKEWS, st.floats(0, 7.5))
def test_an_answer_that_takes_its_time_moves_no_sample_by_more_than_half_of_it(skew_s, waits_s):
    (found,) = states(asked([0.0], skew_s=skew_s, waits_s=waits_s), [0.0])

    assert found.is_fresh
    assert found.sampled_at == pytest.approx(NOW, abs=waits_s + 0.01)
