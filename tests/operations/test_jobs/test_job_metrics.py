"""Whatever a Job prints, its number is read, or there is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.test_jobs.job_metrics import numbers_at

PRINTED = json.dumps({"testcases": [{"name": "device_to_device", "sum": 312.5}], "ok": True}, indent=2).splitlines()


@pytest.mark.parametrize(
    ("lines", "path", "number"),
    [
        (["starting", *PRINTED, "done"], "testcases.0.sum", 312.5),
        (PRINTED, "testcases.name=device_to_device.sum", 312.5),
        (PRINTED, "testcases.name=another.sum", None),
        (['{"sum": 1}', '{"sum": 2}'], "sum", 2.0),
        (['[{"sum": 7}]'], "0.sum", 7.0),
        (PRINTED, "testcases.1.sum", None),
        (PRINTED, "testcases.0.name", None),
        (PRINTED, "ok", None),
        (PRINTED[:-2], "testcases.0.sum", None),
        (['{"sum": NaN}'], "sum", None),
        (['{"sum": 1e999}'], "sum", None),
        ([f'{{"sum": {"9" * 400}}}'], "sum", None),
        (["[" * 100_000], "0", None),
        (["no JSON"], "sum", None),
        ([], "sum", None),
    ],
)
def test_the_number_of_the_last_json(lines, path, number):
    assert numbers_at(lines, [path]).get(path) == number


@given(lines=st.lists(st.text()), path=st.text())
def test_no_output_breaks_it(lines, path):
    assert all(isinstance(number, float) for number in numbers_at(lines, [path]).values())
