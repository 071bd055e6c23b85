"""What is read of the pods on the nodes: of thousands of nodes most pods are operands that no check asks about."""

import pytest

from fleet.models import Node, Pod
from rollouts.preflight.driver_facts import OperandPod, operands_on, pods_on, tenants_on
from tests.make import a_node, a_pod

GONE = {"phase": "Succeeded"}


@pytest.fixture
def node(cluster) -> Node:
    return a_node(cluster, "gpu-a")


def read(node: Node) -> set[str]:
    return {pod.name for pod in pods_on(node.cluster_id, [node.name])}


def an_operand(node: Node, name: str, **given) -> Pod:
    return a_pod(node, name, **{"gpus": 0, "owner_kind": "DaemonSet", "operand": "driver", **given})


def test_an_operand_that_asks_for_no_gpu_is_not_read(node: Node):
    an_operand(node, "driver")
    a_pod(node, "model")

    assert read(node) == {"model"}


@pytest.mark.parametrize(
    "given",
    [
        {"operand": ""},  # it may look at GPUs without asking for them
        {"operand": "dra-driver"},  # it holds the driver that is loaded
        {"owner_kind": ""},  # a drain does not pass it over
        {"resources": {"nvidia.com/gpu": 1}},  # it is evicted
        {"claims": ["a-claim"]},
    ],
)
def test_what_a_check_may_ask_about_is_read(node: Node, given: dict):
    an_operand(node, "asked-about", **given)

    assert read(node) == {"asked-about"}


def test_tenants_are_read_alone(node: Node):
    a_pod(node, "model")
    a_pod(node, "over", **GONE)
    an_operand(node, "asked-about", operand="")

    assert {pod.name for pod in tenants_on(node.cluster_id, [node.name])} == {"model"}


def test_of_operands_only_what_they_are_and_whether_they_are_ready_is_read(node: Node):
    an_operand(node, "driver")
    an_operand(node, "toolkit", operand="container-toolkit", is_ready=False)
    an_operand(node, "over", operand="mig-manager", **GONE)
    a_pod(node, "model")

    assert operands_on(node.cluster_id, [node.name]) == {
        "gpu-a": {OperandPod("driver", is_ready=True), OperandPod("container-toolkit", is_ready=False)}
    }
