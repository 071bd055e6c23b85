from datetime import UTC, datetime

import pytest

from fleet.models import DriverObject, Node, Operand, OperandRevision, Pod
from fleet.stack import driver_versions, operands_on, tag_of

DEPLOY = "nvidia.com/gpu.deploy.device-plugin"


def a_daemon_set(**given) -> Operand:
    return Operand(**{"uid": "ds", "operand": "device-plugin", "node_selector": {DEPLOY: "true"}} | given)


def a_pod(**given) -> Pod:
    row = {"namespace": "gpu-operator", "name": "p", "operand": "device-plugin", "owner_uid": "ds", "is_ready": True}
    return Pod(**row | given)


def because(labels: dict[str, str], *pods: Pod) -> list[str]:
    return [row.because for row in operands_on(Node(labels=labels), [a_daemon_set()], pods, [])]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("true", ["No pod on this node, although its DaemonSet selects it."]),
        ("paused-for-driver-upgrade", ["Paused while the driver changes."]),
        ("custom_paused-for-driver-upgrade", ["Paused while the driver changes."]),
        ("false", []),
    ],
)
def test_why_an_operand_has_no_pod(value, said):
    assert because({DEPLOY: value}) == said


def test_a_pod_that_is_being_deleted_is_not_ready():
    gone = a_pod(deleted_at=datetime(2026, 11, 21, tzinfo=UTC))

    assert because({DEPLOY: "true"}, gone) == ["The pod is being deleted."]


@pytest.mark.parametrize(("pods_hash", "is_current"), [("new", True), ("old", False), ("", None)])
def test_a_pod_of_an_older_template_is_not_current(pods_hash, is_current):
    revisions = [
        OperandRevision(owner_uid="ds", revision=2, revision_hash="new"),
        OperandRevision(owner_uid="ds", revision=1, revision_hash="old"),
    ]

    (row,) = operands_on(Node(labels={}), [a_daemon_set()], [a_pod(revision_hash=pods_hash)], revisions)

    assert row.is_current is is_current


def test_a_pod_whose_daemon_set_is_gone_is_still_shown():
    (row,) = operands_on(Node(labels={}), [], [a_pod(owner_uid="other")], [])

    assert row.pod == "gpu-operator/p"


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("nvcr.io/nvidia/driver:580.95.05-ubuntu22.04", "580.95.05-ubuntu22.04"),
        ("registry:5000/driver", ""),
        ("registry:5000/driver:1.2@sha256:abc", "1.2"),
        ("driver@sha256:abc", ""),
        ("", ""),
    ],
)
def test_the_tag_of_an_image(image, tag):
    assert tag_of(image) == tag


@pytest.mark.parametrize(
    ("running", "tag", "desired", "agree"),
    [
        ("580.95.05", "580.95.05-ubuntu22.04", "580.95.05", True),
        ("580.95.05", "580-5.15.0-25-generic-ubuntu22.04", "580", True),
        ("570.172.08", "580.95.05-ubuntu22.04", "580.95.05", False),
        ("570.172.08", "580-5.15.0-25-generic-ubuntu22.04", "580", False),
        ("580.95.05", "580.95.05-ubuntu22.04", "580.95", True),
        ("580.95.05", "", "", True),
        ("", "", "580.95.05", True),
    ],
)
def test_whether_the_sources_agree(running, tag, desired, agree):
    node = Node(driver_version=running, driver_owner="h200")
    source = DriverObject(kind="NVIDIADriver", name="h200", version=desired)
    pod = a_pod(operand="driver", image=f"nvcr.io/nvidia/driver:{tag}" if tag else "")

    found = driver_versions(node, [source], [pod])

    assert (found.disagreement == "") == agree


def test_a_node_that_is_silent_does_not_disagree():
    node = Node(driver_version="570.172.08", driver_unknown_since=datetime(2026, 11, 21, tzinfo=UTC))

    assert driver_versions(node, [], [a_pod(operand="driver", image="driver:580.95.05")]).disagreement == ""


def test_a_node_without_a_driver_owner_follows_the_cluster_policy_that_counts():
    policies = [DriverObject(kind="ClusterPolicy", name="policy", version="580.95.05")]

    assert driver_versions(Node(), policies, []).desired_by == "ClusterPolicy policy"
    policies[0].uses_driver_crd = True
    assert driver_versions(Node(), policies, []).desired_by == ""
