from datetime import timedelta

import pytest

from health.evaluation.late_pods import starting_pods
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("hours", "is_ready", "found"), [(2, False, ["gpu-1"]), (0.5, False, []), (2, True, [])])
def test_a_pod_that_runs_and_is_not_ready_for_an_hour_is_found(hours, is_ready, found):
    cluster = make.a_cluster()
    node = make.a_node(cluster, "gpu-1")
    since = NOON - timedelta(hours=hours)
    make.a_pod(node, "vllm-0", is_ready=is_ready, ready_since=since, started_at=since, is_tenant=True)

    starting = starting_pods(cluster, now=NOON)

    assert list(starting) == found
    assert all(pod.cause.startswith("Runs and is not ready") for pods in starting.values() for pod in pods)
