"""What keeps the operator's queue of driver upgrades, as rows show it."""

import pytest

from fleet.models import Pod
from health.evaluation.upgrade_queue import blocker_of_queue
from health.rules.base import Blocker
from tests.make import a_cluster, a_node, a_pod

pytestmark = pytest.mark.django_db
QUEUED, DONE = "upgrade-required", "upgrade-done"


@pytest.fixture
def cluster():
    cluster = a_cluster()
    a_node(cluster, "gpu-001", upgrade_state=QUEUED, driver_owner="h100")
    return cluster


def test_names_who_is_in_its_slots_and_by_what(cluster):
    a_node(cluster, "gpu-002", upgrade_state="upgrade-failed", driver_owner="h100", is_unschedulable=True)
    a_node(cluster, "gpu-003", upgrade_state=DONE, driver_owner="h100", is_unschedulable=True)
    a_node(cluster, "gpu-004", upgrade_state=DONE, driver_owner="h100", is_ready=False)
    a_node(cluster, "gpu-005", upgrade_state="drain-required", driver_owner="h100", is_unschedulable=True)
    a_node(cluster, "gpu-006", upgrade_state=DONE, driver_owner="h100")

    blocker = blocker_of_queue(cluster)[1]
    assert blocker.causes == (
        "A slot is taken: gpu-002 failed its upgrade.",
        "A slot is taken: gpu-005 is in progress.",
        "A slot is taken: gpu-004 is not ready.",
        "A slot is taken: gpu-003 is cordoned.",
    )
    assert blocker.steps[0] == "Repair these nodes."


def test_nodes_of_another_driver_object_take_none_of_its_slots(cluster):
    a_node(cluster, "gpu-002", upgrade_state=DONE, driver_owner="a100", is_unschedulable=True)

    assert blocker_of_queue(cluster) == ("", Blocker())


def test_a_driver_pod_without_a_node_comes_first(cluster):
    pod = a_pod(a_node(cluster, "gpu-002", driver_owner="h100", is_unschedulable=True), "driver-x", operand="driver")
    Pod.objects.filter(pk=pod.pk).update(node=None, node_name="", phase="Pending", waiting_reason="no node fits")

    assert blocker_of_queue(cluster)[1].causes == (
        (
            "The driver pod team-a/driver-x is not scheduled to a node (no node fits). Until then, the operator "
            "upgrades no node."
        ),
    )


def test_what_the_scheduler_counts_is_no_other_cause_and_hides_no_help(cluster):
    pod = a_pod(a_node(cluster, "gpu-002", driver_owner="h100", is_unschedulable=True), "driver-x", operand="driver")

    def kept(nodes: int) -> tuple[str, Blocker]:
        said = f"0/{nodes} nodes are available: {nodes} node(s) had untolerated taint. " * 5
        Pod.objects.filter(pk=pod.pk).update(node=None, node_name="", phase="Pending", waiting_reason=said)
        return blocker_of_queue(cluster)

    (why, blocker), (later_why, _) = kept(412), kept(413)

    assert why == later_why == "pod team-a/driver-x"
    assert len(blocker.causes[0]) <= 300
    assert "Free resources for the pod, or change the node selector of its NVIDIADriver" in blocker.steps[0]


def test_where_rows_show_nothing_nothing_is_said(cluster):
    assert blocker_of_queue(cluster) == ("", Blocker())
