"""Of a device plugin or an exporter that does not run one finding is told, and what comes of it is listed under it."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, Node, Observer, Pod
from health.evaluation import evaluation_round
from health.evaluation.exporter_silence import ReportingNodes
from health.evaluation.missing_operands import operands_away
from health.models import Finding
from tests.make import NOON, a_cluster, a_node, a_pod, an_operand
from tests.reports import causes

NONE_LEFT = {"gpu_allocatable": 0}
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    for operand in ("device-plugin", "dcgm-exporter"):
        an_operand(cluster, operand, desired=2)
    return cluster


def look(cluster, *minutes: int) -> None:
    for minute in minutes:
        at = NOON + timedelta(minutes=minute)
        Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
        evaluation_round.evaluate_cluster(cluster, now=at)


def without_cause() -> list[str]:
    return sorted(Finding.objects.open().without_cause().values_list("rule", flat=True))


def test_a_node_without_its_device_plugin_is_told_of_once(cluster):
    a_node(cluster, "gpu-001", **NONE_LEFT)

    look(cluster, 0, 2)

    assert without_cause() == ["operand-down"]
    assert Finding.objects.get(rule="allocatable-below-expected").parent.severity == "critical"


def test_where_the_plugin_runs_the_gpus_are_missing_by_themselves(cluster):
    node = a_node(cluster, "gpu-001", **NONE_LEFT)
    a_pod(node, "plugin", namespace="gpu-operator", gpus=0, operand="device-plugin")

    look(cluster, 0, 2)

    assert without_cause() == ["allocatable-below-expected"]


def test_a_plugin_that_crashes_is_the_same_finding(cluster):
    node = a_node(cluster, "gpu-001", **NONE_LEFT)
    row = {"status": "CrashLoopBackOff", "is_ready": False, "stuck_container": "main", "restarts": 8}
    waiting = "CrashLoopBackOff: back-off 5m0s"
    a_pod(node, "plugin", namespace="gpu-operator", gpus=0, operand="device-plugin", waiting_reason=waiting, **row)

    look(cluster, 0, 2)

    assert without_cause() == ["operand-down"]
    assert Finding.objects.get(rule="pods-failing").parent.rule == "operand-down"


@pytest.mark.parametrize(
    ("ready", "said"),
    [
        ((False,), "Driver, device plugin not running on gpu-001"),
        ((False, True), "Device plugin not running on gpu-001"),  # the old one ends
        ((), "Device plugin not running on gpu-001"),  # the host's own driver
    ],
)
def test_a_driver_that_does_not_come_up_is_named_before_what_waits_for_it(cluster, ready, said):
    an_operand(cluster, "driver", desired=2)
    node = a_node(cluster, "gpu-001", **NONE_LEFT)
    for number, is_ready in enumerate(ready):
        a_pod(node, f"driver-{number}", namespace="gpu-operator", gpus=0, operand="driver", is_ready=is_ready)

    look(cluster, 0, 2)

    assert without_cause() == ["operand-down"]
    assert Finding.objects.get(rule="operand-down").title == said


def test_operands_left_paused_explain_all_that_is_away_with_them(cluster):
    a_node(cluster, "gpu-001", is_paused=True, **NONE_LEFT)

    look(cluster, 0, 2, 11)

    assert without_cause() == ["paused-operands"]


def test_an_exporter_that_is_away_is_named_where_nothing_has_telemetry(cluster):
    for number in (1, 2, 3):
        node = a_node(cluster, f"gpu-{number}")
        a_pod(node, f"plugin-{number}", namespace="gpu-operator", gpus=0, operand="device-plugin")
    a_pod(Node.objects.get(name="gpu-2"), "exporter", namespace="gpu-operator", gpus=0, operand="dcgm-exporter")
    reporting = ReportingNodes(frozenset({"gpu-3"}), frozenset({"gpu-1", "gpu-2", "gpu-3"}))

    assert operands_away(cluster, reporting) == {"gpu-1": ("dcgm-exporter",)}


@pytest.mark.parametrize(
    ("resource", "operand", "called"),
    [
        ("amd.com/gpu", "amd-device-plugin", "AMD device plugin"),
        ("habana.ai/gaudi", "gaudi-device-plugin", "Gaudi device plugin"),
        ("gpu.nvidia.com", "dra-driver", "DRA driver"),
    ],
)
def test_gpus_that_somebody_else_offers_are_not_the_device_plugins(cluster, resource, operand, called):
    counts = {"expected": {resource: 8}, "capacity": {resource: 8}, "allocatable": {resource: 0}}
    node = a_node(cluster, "other-001", **NONE_LEFT, **counts)
    assert operands_away(cluster, None) == {}  # nobody runs it as a DaemonSet

    an_operand(cluster, operand)
    assert operands_away(cluster, None) == {node.name: (operand,)}
    look(cluster, 0, 2)

    down = Finding.objects.open().get(rule="operand-down")
    assert down.title == f"{called} not running on other-001"
    assert "nvidia.com" not in causes(down)


def test_of_what_no_daemonset_runs_nobody_says_that_it_is_away(cluster):
    cluster.operands.all().delete()
    a_node(cluster, "gpu-001", **NONE_LEFT)

    assert operands_away(cluster, None) == {}
    assert not Pod.objects.exists()


def test_it_costs_the_same_for_one_node_and_for_fifty(cluster, django_assert_num_queries):
    for number in range(50):
        a_node(cluster, f"gpu-{number:03}", **NONE_LEFT)

    with django_assert_num_queries(4):
        operands_away(cluster, None)
    an_operand(cluster, "driver", desired=50)
    with django_assert_num_queries(5):
        operands_away(cluster, None)
