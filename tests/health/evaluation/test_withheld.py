"""GPUs that a ready plugin reports as unhealthy: its log says why."""

from datetime import timedelta

import pytest

from fleet.models import Observer
from health.evaluation.evaluation_round import evaluate_cluster
from health.models import Finding
from tests import make
from tests.make import NOON
from tests.reports import causes, steps, told

pytestmark = pytest.mark.django_db
MARKED = (
    "I1025 02:19:08.048185       1 health.go:186] XidCriticalError: Xid=94 on Device=GPU-4ab4b8b9; marking device as "
    "unhealthy."
)


@pytest.fixture
def node():
    cluster = make.a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return make.a_node(
        cluster, "gpu-001", gpus=8, capacity={"nvidia.com/gpu": 8}, allocatable={"nvidia.com/gpu": 7},
        expected={"nvidia.com/gpu": 8},
    )  # fmt: skip


def missing(node) -> Finding:
    evaluate_cluster(node.cluster, now=NOON)
    return Finding.objects.get(rule="allocatable-below-expected")


@pytest.mark.parametrize("has_log", [True, False])
def test_the_finding_says_what_the_log_of_the_plugin_says(node, has_log):
    since = {"gpus": 0, "started_at": NOON - timedelta(hours=1), "ready_since": NOON - timedelta(hours=1)}
    plugin = make.a_pod(node, "plugin", operand="device-plugin", is_ready=True, **since)
    make.a_finding(node.cluster, "node gpu-001", node=node, rule="allocatable-below-expected")
    if has_log:
        make.a_crash_log(plugin, MARKED, container="", read_at=NOON - timedelta(minutes=1))

    found = missing(node)

    assert ("Device plugin withholds a GPU since Xid 94" in causes(found)) is has_log
    assert ("delete the plugin's pod" in steps(found)) is has_log
    assert ("Log line of the device plugin: I1025" in told(found)) is has_log
    assert "a finding of the node says" not in causes(found)


def test_a_dra_driver_that_runs_is_named_before_a_device_plugin_that_is_not_there():
    cluster = make.a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    node = make.a_node(cluster, "gpu-001", capacity={}, allocatable={}, expected={}, is_ready=True)
    make.a_pod(
        node, "dra", operand="dra-driver", is_ready=False, gpus=0, phase="Pending", waiting_reason="CrashLoopBackOff",
        last_words="Check failed. Has the NVIDIA GPU driver been set up?",
        started_at=NOON - timedelta(hours=1),
    )  # fmt: skip

    evaluate_cluster(cluster, now=NOON)
    offers = Finding.objects.get(rule="gpus-never-offered")

    assert "DRA driver: " in told(offers)
    assert "Has the NVIDIA GPU driver been set up?" in causes(offers)
