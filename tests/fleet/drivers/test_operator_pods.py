import pytest

from fleet.drivers.cluster_drivers import operator_trouble
from fleet.models import Pod
from tests import make
from tests.make import NOON, an_operator

pytestmark = pytest.mark.django_db


def its_pod(cluster, reason: str) -> Pod:
    row = {"namespace": "gpu-operator", "name": "gpu-operator-6b7854bc77-r5p9f", "uid": "uid-of-its-pod"}
    return Pod.objects.create(
        cluster=cluster, created_at=NOON, changed_at=NOON, phase="Running", waiting_reason=reason, **row
    )


def test_an_operator_that_runs_is_no_trouble():
    cluster = make.a_cluster()
    an_operator(cluster)
    an_operator(cluster, name="gpu-operator-node-feature-discovery-master", uid="nfd", ready=0, pod_labels={})

    assert operator_trouble(cluster) == ""


def test_an_operator_that_is_not_seen_is_no_trouble():
    assert operator_trouble(make.a_cluster()) == ""


@pytest.mark.parametrize("other", [{"desired": 2, "ready": 1}, {}])
def test_one_pod_that_is_ready_is_an_operator_that_runs(other):
    """One leads and does all of it, whatever waits beside it or was left by an older installation."""
    cluster = make.a_cluster()
    an_operator(cluster, desired=0, ready=0, name="gpu-operator-of-old", uid="old") if not other else None
    an_operator(cluster, **other)

    assert operator_trouble(cluster) == ""


def test_an_operator_that_crashes_says_why():
    cluster = make.a_cluster()
    an_operator(cluster, ready=0)
    its_pod(cluster, "CrashLoopBackOff: back-off 5m0s (it ended with OOMKilled, exit code 137)")  # gpu-operator #331

    said = operator_trouble(cluster)

    assert said.startswith("The GPU operator does not run (Deployment gpu-operator/gpu-operator, 0 of 1 pods ready)")
    assert "OOMKilled" in said


def test_an_operator_that_is_scaled_to_nothing_says_so():
    cluster = make.a_cluster()
    an_operator(cluster, desired=0, ready=0)

    assert "scaled to 0" in operator_trouble(cluster)


def test_an_operator_of_operator_hub_is_known_by_its_component():
    cluster = make.a_cluster()
    an_operator(cluster, ready=0, pod_labels={"app.kubernetes.io/component": "gpu-operator", "name": "gpu-operator"})

    assert operator_trouble(cluster).startswith("The GPU operator does not run")
