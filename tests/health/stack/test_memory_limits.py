"""A missing limit of memory is said of the container that ran out of it alone."""

from datetime import UTC, datetime

import pytest

from fleet.models import Pod
from health.stack.rows import StackRows
from health.stack.signs import pod_signs


@pytest.mark.parametrize(
    ("ended", "limit"),
    [
        ({"container": "main", "reason": "OOMKilled", "has_no_memory_limit": True}, 0),
        ({"container": "main", "reason": "OOMKilled", "memory_limit_bytes": 1 << 30}, 1 << 30),
        ({"container": "main", "reason": "OOMKilled"}, None),  # not read, or the pod has a limit of its own
        ({"container": "main", "reason": "Error", "has_no_memory_limit": True}, None),
        ({"container": "proxy", "reason": "OOMKilled", "has_no_memory_limit": True}, None),
        ({}, None),
    ],
)
def test_the_limit_is_of_the_container_that_ran_out_of_memory(ended, limit):
    pod = Pod(name="train-0", namespace="a", stuck_container="main", container_settings={"ended": ended})

    assert (
        pod_signs(pod, None, StackRows([], [], [], [], datetime(2026, 12, 1, tzinfo=UTC))).memory_limit_bytes == limit
    )
