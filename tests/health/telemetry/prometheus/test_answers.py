import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from health.telemetry.prometheus.answers import FillCounts, Placing, Unusable, fill, labels, vector
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot

DEVICES = tuple(GpuDevice("gpu-1", number, f"GPU-{number}") for number in range(3))


def an_answer(*values: object, **more: object) -> bytes:
    """A vector with a series for each device, in their order."""
    result = [{"metric": {"UUID": f"GPU-{n}"}, "value": [1000.5, str(value)]} for n, value in enumerate(values)]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}, **more}).encode()


def filled(column: MetricColumn, values: bytes, times: bytes, **how: Any) -> int:
    return fill(column, vector(values), vector(times), Placing(TelemetrySnapshot(0.0, DEVICES).index()), **how).moved


def test_writes_each_value_with_the_time_of_its_sample():
    column = MetricColumn.empty(3)

    assert filled(column, an_answer(61, 62, 63), an_answer(990, 991, 992)) == 3
    assert list(column.values) == [61.0, 62.0, 63.0]
    assert list(column.times) == [990.0, 991.0, 992.0]


def test_speaks_in_our_units_and_by_our_clock():
    column = MetricColumn.empty(3)

    filled(column, an_answer(50, 60, 70), an_answer(990, 990, 990), factor=0.01, offset_s=5.0)

    assert column.values[0] == pytest.approx(0.5)
    assert column.times[0] == 995.0


def test_keeps_what_is_newer_than_an_answer():
    column = MetricColumn.empty(3)
    filled(column, an_answer(61, 62, 63), an_answer(990, 990, 990))

    assert filled(column, an_answer(1, 2, 3), an_answer(980, 990, 995)) == 1
    assert list(column.values) == [61.0, 62.0, 3.0]


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-Inf"])
def test_takes_what_is_no_number_for_no_value(odd):
    column = MetricColumn.empty(3)

    filled(column, an_answer(61, odd, 63), an_answer(990, 990, 990))

    assert column.values[0] == 61.0
    assert math.isnan(column.values[1])


def test_takes_what_cannot_be_for_no_value_and_counts_it():
    column, index = MetricColumn.empty(3), TelemetrySnapshot(0.0, DEVICES).index()
    values, times = vector(an_answer(82505, 2147483634, "NaN")), vector(an_answer(990, 990, 990))

    found = fill(column, values, times, Placing(index), bounds=(1.0, 150.0))

    assert found == FillCounts(moved=0, impossible=1, ahead=0)  # a blank and NaN are how it says that it knows nothing
    assert all(map(math.isnan, column.values))


def test_a_sample_of_a_time_that_is_yet_to_come_is_none_and_stands_in_nobodys_way():
    column, index = MetricColumn.empty(3), TelemetrySnapshot(0.0, DEVICES).index()
    column.values[2], column.times[2] = 55.0, 9_000.0  # as when our own clock was ahead

    first = fill(column, vector(an_answer(61, 62)), vector(an_answer(5000, 990)), Placing(index), latest=1090.0)
    assert first == FillCounts(moved=1, impossible=0, ahead=1)
    fill(column, vector(an_answer(71, 72, 73)), vector(an_answer(991, 991, 991)), Placing(index), latest=1091.0)

    assert list(column.values) == [71.0, 72.0, 73.0]


def test_takes_a_value_without_a_time_for_no_value():
    column = MetricColumn.empty(3)

    assert filled(column, an_answer(61, 62, 63), an_answer(990)) == 1
    assert math.isnan(column.values[2])


def test_leaves_out_devices_that_the_frame_does_not_have():
    column = MetricColumn.empty(3)

    assert filled(column, an_answer(1, 2, 3, 4, 5), an_answer(990, 990, 990, 990, 990)) == 3


def test_knows_devices_in_another_order_again():
    column, placing = MetricColumn.empty(3), Placing(TelemetrySnapshot(0.0, DEVICES).index())
    fill(column, vector(an_answer(61, 62, 63)), vector(an_answer(990, 990, 990)), placing)
    backwards = vector(an_answer(71, 72, 73))[::-1]

    fill(column, backwards, vector(an_answer(991, 991, 991)), placing)

    assert list(column.values) == [71.0, 72.0, 73.0]


def test_knows_a_device_by_its_labels_in_the_next_round_too_and_forgets_a_stranger():
    keys = {}
    rows = vector(an_answer(61, 62, 63, 64))
    Placing(TelemetrySnapshot(0.0, DEVICES).index(), keys).places(rows)
    assert sorted(keys.values()) == [device.key for device in DEVICES]

    places = Placing(TelemetrySnapshot(0.0, DEVICES[::-1]).index(), keys).places(rows)

    assert list(places) == [2, 1, 0, -1]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "It answers nothing"),
        (
            b"<!DOCTYPE html><html>Sign in</html>",
            "The server returns a web page instead of JSON, as a sign-in page or a proxy does",
        ),
        (b"not found", "The answer is not the JSON of a Prometheus"),
        (b'{"status":"success","data":{"resultType":"vec', "The answer is not the JSON of a Prometheus"),
        (b"\xff\xfe", "The answer is not the JSON of a Prometheus"),
        (
            b'{"status":"success","data":{"result":[{"metric":' + b"[" * 100_000,
            "The answer is not the JSON of a Prometheus",
        ),
        (b'{"status":"error","errorType":"timeout","error":"query timed out"}', "timeout: query timed out"),
        (b'{"status":"success","data":{"resultType":"matrix","result":[]}}', "a matrix instead of a vector"),
        (an_answer(1, isPartial=True), "a partial answer"),
        (an_answer(1, warnings=["partial response: store eu-2 away"]), "incomplete.*store eu-2 away"),
    ],
)
def test_says_in_a_sentence_what_is_wrong_with_an_answer(body, sentence):
    with pytest.raises(Unusable, match=sentence):
        vector(body)


def test_reads_labels_that_nobody_knows():
    body = json.dumps(
        {"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"é": "1"}, "value": [1, "2"]}]}}
    )

    assert labels(vector(body.encode())[0]) == {"é": "1"}


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
).map(lambda value: json.dumps({"status": "success", "data": value}).encode()))  # fmt: skip
def test_reads_any_answer_or_refuses_it(body):
    with contextlib.suppress(Unusable):
        vector(body)


NUL = rb"an error\u0000"


@pytest.mark.parametrize(
    "body",
    [
        b'{"status": "error", "errorType": "bad_data", "error": "%s"}' % NUL,
        b'{"status": "success", "data": {"resultType": "%s", "result": []}}' % NUL,
        b'{"status": "success", "warnings": ["%s"], "data": {"resultType": "vector", "result": []}}' % NUL,
    ],
)
def test_what_no_row_can_keep_is_in_no_sentence(body):
    with pytest.raises(Unusable) as refusal:
        vector(body)

    assert "an error" in str(refusal.value)
    assert "\0" not in str(refusal.value)


def test_what_no_row_can_keep_is_left_out_of_labels():
    body = (
        rb'{"status":"success","data":{"result":[{"metric":{"UUID":"GPU-\u00000","path":"\\u0000"},"value":[1,"2"]}]}}'
    )

    (series,) = vector(body)

    assert labels(series) == {"UUID": "GPU-0", "path": r"\u0000"}


def test_null_for_a_list_of_warnings_is_no_warning():
    body = b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"2"]}]},%s}'

    for said in (b'"warnings":null', b'"isPartial":null,"infos":["PromQL info"]', b'"warnings":[]'):
        assert [series.value.value for series in vector(body % said)] == [2.0]
