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


@pytest.mark.parametrize(("minutes", "found"), [(30, ["gpu-1"]), (4, [])])
def test_an_operand_that_never_becomes_ready_is_found_with_its_cause(minutes, found):
    cluster = make.a_cluster()
    node = make.a_node(cluster, "gpu-1")
    since = NOON - timedelta(minutes=minutes)
    pod = make.a_pod(
        node, "toolkit-0", operand="container-toolkit", is_tenant=False, phase="Pending", is_ready=False,
        started_at=since, ready_since=since, stuck_container="driver-validation",
    )  # fmt: skip
    make.a_crash_log(pod, "nvidia-smi: command not found", "command failed, retrying after 5 seconds")

    starting = starting_pods(cluster, now=NOON)

    assert list(starting) == found
    assert all(pod.summary.startswith("Container toolkit: ") for pods in starting.values() for pod in pods)
