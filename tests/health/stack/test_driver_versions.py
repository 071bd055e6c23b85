from datetime import UTC, datetime

import pytest

from fleet.models import DriverObject, Node, Operand, Pod, ResourceSlice
from health.stack.driver_versions import driver_versions
from health.stack.node_operands import operands_on
from health.stack.rows import StackRows

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def versions(node: Node, *objects: DriverObject, tag: str = "", image: str = "", slices=(), operands=()):
    image = image or (f"nvcr.io/nvidia/driver:{tag}" if tag else "")
    pod = Pod(uid="p", name="d", namespace="n", node_name=node.name, operand="driver", image=image, is_ready=True)
    rows = StackRows(list(operands), [], list(objects), [pod] if image else [], NOON)
    return driver_versions(node, operands_on(node, rows), slices)


def a_node(version: str = "", **given) -> Node:
    row = {"name": "gpu-1", "is_ready": True, "driver_owner": "h200"}
    return Node(**{**row, "driver_version": version} | given)


def an_nvidia_driver(version: str, **given) -> DriverObject:
    return DriverObject(**{"kind": "NVIDIADriver", "name": "h200", "version": version} | given)


@pytest.mark.parametrize(
    ("running", "tag", "desired", "agree"),
    [
        ("580.95.05", "580.95.05-ubuntu22.04", "580.95.05", True),
        ("580.95.5", "580.95.05-ubuntu22.04", "580.95.05", True),
        ("580.95.05", "580-5.15.0-25-generic-ubuntu22.04", "580", True),
        ("580.95.05", "580.95.05-r2-ubuntu22.04", "580.95.05-r2", True),
        ("580.95.05", "580.95.05-r1-ubuntu22.04", "580.95.05-r2", False),
        ("570.172.08", "580.95.05-ubuntu22.04", "580.95.05", False),
        ("570.172.08", "580-5.15.0-25-generic-ubuntu22.04", "580", False),
        ("580.95.05", "580.95.05-ubuntu22.04", "580.95", True),
        ("580.95.05", "", "", True),
    ],
)
def test_whether_the_sources_agree(running, tag, desired, agree):
    found = versions(a_node(running), an_nvidia_driver(desired), tag=tag)

    assert (found.disagreement == "") == agree


def test_those_that_disagree_are_named_with_what_holds_them():
    node = a_node("570.172.08", is_held=True, held_by="plan-7")
    found = versions(node, an_nvidia_driver("580.95.05"), tag="570.172.08-ubuntu24.04")

    assert found.disagreement == (
        "The node runs 570.172.08, its driver pod carries 570.172.08-ubuntu24.04, the cluster asks for "
        "580.95.05. The node is held by plan-7."
    )


def test_a_node_that_is_silent_does_not_disagree_and_says_since_when():
    found = versions(a_node("570.172.08", driver_unknown_since=NOON), tag="580.95.05-ubuntu24.04")

    (label,) = [said for said in found.sources if said.role == "running"]
    assert found.disagreement == ""
    assert (label.is_known, label.version) == (False, "570.172.08")
    assert label.note == "Unknown since 2026-11-21 12:00 UTC: the label is gone. Its last value was 570.172.08."


@pytest.mark.parametrize(
    ("image", "note"),
    [
        ("driver:580-6.8.0-60-generic-ubuntu24.04", "Precompiled: the tag names only the driver branch."),
        ("driver@sha256:0123", "The image is named by a digest, which has no version."),
        ("driver:580.95.05-ubuntu24.04", ""),
    ],
)
def test_what_an_image_does_not_tell_is_said(image, note):
    found = versions(a_node("580.95.05"), an_nvidia_driver("580"), image=image)

    (rolled_out,) = [said for said in found.sources if said.role == "rolled out"]
    assert (rolled_out.note, found.disagreement) == (note, "")


def test_a_resource_slice_says_what_runs_without_its_zeros():
    old = ResourceSlice(driver="gpu.nvidia.com", pool_generation=1, devices=[{"driver_version": "570.172.8"}])
    new = ResourceSlice(driver="gpu.nvidia.com", pool_generation=2, devices=[{"driver_version": "580.95.5"}] * 8)

    found = versions(a_node(), an_nvidia_driver("580.95.05"), tag="580.95.05-ubuntu24.04", slices=[old, new])

    assert found.running == "580.95.5"
    assert found.disagreement == ""


def test_a_label_and_a_slice_may_disagree():
    told = ResourceSlice(driver="gpu.nvidia.com", devices=[{"driver_version": "580.95.5"}])

    found = versions(a_node("570.172.08"), tag="580.95.05-ubuntu24.04", slices=[told])

    assert found.disagreement == "The label of the node has 570.172.08, the ResourceSlice of the node has 580.95.5."


def test_a_driver_of_the_host_has_only_a_running_version():
    node = a_node("580.95.05", driver_owner="", labels={"nvidia.com/gpu.deploy.driver": "pre-installed"})
    policy = DriverObject(kind="ClusterPolicy", name="policy", version="595.91.07")

    found = versions(node, policy, operands=[Operand(uid="d", operand="driver", node_selector={"x": "y"})])

    assert found.is_pre_installed
    assert [said.role for said in found.sources] == ["running"]
    assert found.disagreement == ""


def test_a_cluster_policy_asks_where_no_nvidia_driver_counts():
    policy = DriverObject(kind="ClusterPolicy", name="policy", version="580.95.05")
    node = a_node("580.95.05", driver_owner="")

    assert versions(node, policy, tag="580.95.05-ubuntu24.04").desired_by == "ClusterPolicy policy"
    policy.uses_driver_crd = True
    assert versions(node, policy, tag="580.95.05-ubuntu24.04").desired_by == ""


def test_before_the_operator_names_owners_only_one_driver_may_select_a_node():
    policy = DriverObject(kind="ClusterPolicy", name="policy", uses_driver_crd=True)
    all_nodes = an_nvidia_driver("580.95.05", name="default")
    gold = an_nvidia_driver("595.91.07", name="gold", node_selector={"pool": "gold"})
    node = a_node(driver_owner="", labels={"pool": "gold", "nvidia.com/gpu.present": "true"})

    assert versions(node, policy, all_nodes, gold, tag="1-x").desired_by == ""
    assert versions(node, policy, gold, tag="1-x").desired_by == "NVIDIADriver gold"
    node.labels["pool"] = "silver"
    assert versions(node, policy, all_nodes, gold, tag="1-x").desired_by == "NVIDIADriver default"
    other = an_nvidia_driver("1", name="other", node_selector={"pool": "silver"})
    more = an_nvidia_driver("2", name="more", node_selector={"pool": "silver"})
    assert versions(node, policy, other, more, tag="1-x").desired_by == ""
