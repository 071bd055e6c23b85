import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.telemetry.prometheus.answers import Unusable
from health.telemetry.prometheus.ranges import POINTS_AT_MOST, Steps, lines_in, steps

ASKED = Steps(1000.0, 15, 4)
GPU = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "UUID": "GPU-a"}


def answered(*values: list, labels: dict | None = None, **more) -> bytes:
    row = {"metric": GPU if labels is None else labels, "values": list(values)}
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [row]}, **more}).encode()


def line(*values: list, **labels: str) -> list[float]:
    found = lines_in(answered(*values, labels={**GPU, **labels}), ASKED)
    return list(next(iter(found.values())))


def test_a_gap_stays_a_gap():
    one, two, three, four = line([1000, "61"], [1030, "0"])

    assert (one, three) == (61.0, 0.0)
    assert math.isnan(two)
    assert math.isnan(four)


def test_values_are_in_the_units_of_the_metric_by_its_device():
    found = lines_in(answered([1000, "50"], labels={"__name__": "DCGM_FI_DEV_GPU_UTIL", "UUID": "GPU-a"}), ASKED)

    assert found["gpu_utilisation_ratio", ("GPU-a", "")][0] == 0.5


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_no_sample(value):
    assert math.isnan(line([1000, value])[0])


@pytest.mark.parametrize("at", [0, 1007, 1e300, -1e300])
def test_a_time_that_was_not_asked_for_is_left_out(at):
    assert all(math.isnan(value) for value in line([at, "61"]))


def test_a_series_that_nobody_knows_is_left_out():
    assert lines_in(answered([1000, "1"], labels={"__name__": "up"}), ASKED) == {}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "The server returns a web page instead of JSON, as a sign-in page or a proxy does"),
        (b"", "answers nothing"),
        (
            b'{"status":"success","data":{"result":[{"metric":' + b"[" * 100_000,
            "The answer is not the JSON of a Prometheus",
        ),
        (b'{"status":"error","errorType":"timeout","error":"query timed out"}', "timeout: query timed out"),
        (answered(warnings=["half of it is away"]), "half of it is away"),
        (answered(isPartial=True), "a partial answer"),
        (b'{"status":"success","data":{"resultType":"vector","result":[]}}', "instead of a matrix"),
        (json.dumps({"status": "success", "data": {"result": [{"metric": {}}] * 4001}}).encode(), "4001 series"),
    ],
)
def test_an_answer_that_is_bad_is_a_sentence(body, said):
    with pytest.raises(Unusable, match=said):
        lines_in(body, ASKED)


@given(window_s=st.integers(60, 40 * 86400), now=st.floats(0, 4e9))
def test_there_are_never_too_many_points_and_they_end_now(window_s, now):
    asked = steps(window_s, now=now)

    assert asked.number == len(asked.times) <= POINTS_AT_MOST
    assert 0 <= now - asked.last < asked.step_s
    assert asked.last - asked.first <= window_s
    assert [asked.place(at) for at in asked.times] == list(range(asked.number))


def test_of_several_series_of_a_metric_those_that_count_and_the_highest():
    clock = {"__name__": "gpu_clock", "serial_number": "692409005408"}
    said = (("system", 132), ("system", 2098), ("fabric", 2900), ("memory", 900))
    rows = [{"metric": clock | {"clock_type": kind}, "values": [[1000, str(mhz)]]} for kind, mhz in said]
    body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}).encode()

    found = {metric: values[0] for (metric, _), values in lines_in(body, ASKED).items()}

    assert found == {"sm_clock_mhz": 2098, "memory_clock_mhz": 900}
