"""The checklist of a GPU node (L2): yes, no with cause and fix, or unknown with the reason."""

import pytest

from health.stack.checklist import CHECKS, ChecklistItem, checklist_of, has_checklist
from health.stack.driver_versions import driver_versions
from health.stack.node_operands import operands_on
from health.stack.node_rows import NodeStack
from tests.health.stack.test_on_node import DEPLOY, a_daemon_set, a_node, a_pod, rows

BUS = {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}
LABELS = {"nvidia.com/gpu.present": "true", **{f"{DEPLOY}{each}": "true" for each in ("driver", "device-plugin")}}
OPERANDS = [a_daemon_set("driver"), a_daemon_set("device-plugin")]
PODS = [a_pod("driver"), a_pod("device-plugin")]


def checked(operands=OPERANDS, pods=PODS, runtime_classes=("nvidia",), **given) -> dict[str, ChecklistItem]:
    well = {
        "labels": LABELS | BUS, "gpu_product": "NVIDIA-H200", "is_gpu_node": True, "physical_gpus": 8,
        "allocatable": {"nvidia.com/gpu": 8}, "capacity": {"nvidia.com/gpu": 8}, "reported_driver": "570.172.08",
    }  # fmt: skip
    columns = well | given
    reported = columns.pop("reported_driver")
    node = a_node(**columns)
    node.__dict__["reported_driver"] = reported
    found = operands_on(node, rows(operands, pods))
    stack = NodeStack(found, driver_versions(node, found, []), frozenset(runtime_classes))
    return {item.key: item for item in checklist_of(node, stack)}


def test_a_node_that_is_well_answers_yes_to_all():
    items = checked()

    assert list(items) == list(CHECKS)
    assert {key: item.answer for key, item in items.items()} == dict.fromkeys(CHECKS, "yes")
    assert all(item.sentence.endswith(".") for item in items.values())


TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("given", "key", "answer", "words", "step"),
    [
        ({"labels": LABELS | {"feature.node.kubernetes.io/cpu-model.id": "1"}, "physical_gpus": None}, "hardware", "no",
         "sees no GPU on the PCI bus", "lspci"),
        ({"labels": LABELS, "physical_gpus": None}, "hardware", "unknown", "has not labelled this node", "Deploy Node"),
        ({"gpu_product": ""}, "labels", "no", "No label names the product", "Deploy feature discovery"),
        ({"labels": LABELS | BUS | {f"{DEPLOY}operands": "false"}}, "not-skipped", "no",
         f"{DEPLOY}operands=false", f"kubectl label node gpu-1 {DEPLOY}operands-"),
        ({"taints": [TAINT], "pods": [a_pod("driver")]}, "taints", "no", "team=a:NoSchedule", ""),
        ({"taints": [TAINT], "pods": [a_pod("driver")]}, "scheduled", "no", "No pod here: Device plugin", ""),
        ({"pods": [a_pod("device-plugin"), a_pod("driver", is_ready=False)]}, "driver-pod", "no", "", ""),
        ({"operands": [], "pods": []}, "driver-pod", "yes", "the host has driver 570.172.08", ""),
        ({"operands": [], "pods": []}, "plugin-pod", "unknown", "No device plugin was seen", ""),
        ({"operands": [], "pods": []}, "scheduled", "unknown", "No operand", ""),
        ({"is_ready": None}, "plugin-pod", "unknown", "The node does not report", ""),
        ({"reported_driver": "", "operands": [], "pods": []}, "module", "unknown", "Nothing reports", "reboot"),
        ({"runtime_classes": ()}, "runtime-class", "unknown", "does not read RuntimeClasses", "kubectl get"),
        ({"allocatable": {"nvidia.com/gpu": 0}, "operands": [], "pods": []}, "allocatable", "no",
         "in its capacity, but all devices are unhealthy", "device plugin"),
        ({"allocatable": {}, "capacity": {}, "operands": [], "pods": []}, "allocatable", "no", "offers no GPU", ""),
    ],
)  # fmt: skip
def test_each_answer_has_its_cause_and_its_fix(given, key: str, answer: str, words: str, step: str):
    item = checked(**given)[key]

    assert item.answer == answer
    assert words in item.sentence
    assert step in " ".join(item.steps)


def test_a_node_without_gpus_on_its_bus_has_no_card():
    assert not has_checklist(a_node(labels={}))
    assert has_checklist(a_node(labels=BUS))
