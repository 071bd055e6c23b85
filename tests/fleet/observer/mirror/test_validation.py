from datetime import UTC, datetime, timedelta, timezone

import pytest

from fleet.models import DriverObject, Node, Pod
from fleet.observer.mirror.validation import why_invalid
from tests.make import NOON

WEST = timezone(-timedelta(hours=14))


@pytest.mark.parametrize(
    ("model", "row", "reason"),
    [
        (Node, {"name": "n" * 254}, "name has 254 characters, 253 at most are allowed."),
        (Node, {"kernel": "6.8\0"}, "kernel has a NUL character."),
        (Node, {"labels": {"a": "b\0"}}, "labels have a NUL character."),
        (Node, {"labels": {"a\0": "b"}}, "labels have a NUL character."),
        (Node, {"taints": [{"key": ["deep", {"deeper": "\0"}]}]}, "taints have a NUL character."),
        (Node, {"labels": {"a": "b" * 600_000}}, "labels are longer than 512 KiB."),
        (DriverObject, {"upgrade_policy": {"max": 2**70}}, "upgrade policy have a number that is out of range."),
        (Node, {"gpu_capacity": 2**31}, "gpu capacity is out of range: 2.15e+09."),
        (Node, {"gpu_capacity": -1}, "gpu capacity is out of range: -1."),
        (Pod, {"restarts": 10**30}, "restarts is out of range: 1e+30."),
        (
            Pod,
            {"created_at": datetime(9999, 12, 31, tzinfo=timezone(-timedelta(hours=14)))},
            "created at is in the year",
        ),
        (Pod, {"created_at": datetime(1, 1, 1, tzinfo=UTC)}, "created at is in the year 1."),
    ],
)
def test_names_what_no_database_should_have(model, row, reason):
    assert why_invalid(model, row).startswith(reason)


def test_an_ordinary_row_is_fit():
    row = {"name": "gpu-001", "labels": {"a": "b"}, "gpu_capacity": 8, "created_at": NOON, "is_ready": None}

    assert why_invalid(Node, row) == ""
