"""What a cluster shows of operands that do not come up."""

import pytest

from simulator.actors.objects import is_true, status
from simulator.actors.pod_logs import PodLogs
from simulator.faults import FAULTS, Board, BrokenOperand
from simulator.faults.board import UnknownFault, parse
from simulator.kinds import EVENT
from tests.simulator.actors.stage import NEW, a_fleet

NODE = "gpu-h100-001"
VALIDATOR, PLUGIN = "app=nvidia-operator-validator", "app=nvidia-device-plugin-daemonset"


def broken(how, **settings):
    stage = a_fleet(2, faults=Board(BrokenOperand(how, node=NODE, **settings)))
    stage.run(90)
    return stage


def the_operand(stage, selector):
    (pod,) = stage.pods(NODE, selector)
    return pod


def waiting(pod, container="", where="containerStatuses"):
    held = status(pod).get(where) or []
    found = next(each for each in held if container in ("", each["name"]))
    return found["state"].get("waiting") or {}


def events(stage, pod):
    listed = stage.store.list(EVENT, "gpu-operator", field_selector=f"involvedObject.name={pod['metadata']['name']}")[0]
    return {(event["type"], event["reason"], event["message"]) for event in listed}


def log_of(stage, pod, container):
    lines = PodLogs(stage.play.world.journal).read(pod, container, True) or []
    return [line.partition(" ")[2] for line in lines]


def test_a_tag_that_is_missing_is_not_pulled():
    stage = broken("image")

    pod = stage.driver_pod(NODE)
    told = events(stage, pod)

    assert waiting(pod)["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04: not found" in waiting(pod)["message"]
    assert status(pod)["phase"] == "Pending"
    assert ("Warning", "Failed", "Error: ImagePullBackOff") in told
    assert ("Normal", "BackOff", 'Back-off pulling image "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04"') in told


def test_missing_headers_are_named_before_the_shutdown_in_the_last_log():
    stage = broken("headers")

    pod = stage.driver_pod(NODE)
    lines = log_of(stage, pod, "nvidia-driver-ctr")

    assert waiting(pod)["reason"] == "CrashLoopBackOff"
    assert "Could not resolve Linux kernel version" in lines
    assert lines[-1] == "Unmounting NVIDIA driver rootfs..."


def test_nouveau_stops_the_driver_manager():
    stage = broken("nouveau")

    pod = stage.driver_pod(NODE)

    assert waiting(pod, where="initContainerStatuses")["reason"] == "CrashLoopBackOff"
    assert "failed to unload nouveau driver" in log_of(stage, pod, "k8s-driver-manager")[-1]


def test_without_the_runtime_there_is_no_sandbox():
    stage = broken("runtime")

    pod = the_operand(stage, PLUGIN)

    assert "podIP" not in status(pod)
    assert any(
        reason == "FailedCreatePodSandBox" and 'no runtime for "nvidia"' in words
        for _, reason, words in events(stage, pod)
    )
    assert is_true(the_operand(stage, "app=nvidia-container-toolkit-daemonset"), "Ready")


@pytest.mark.parametrize(
    ("container", "words"),
    [
        ("toolkit-validation", 'exec: \\"nvidia-smi\\": executable file not found in $PATH'),
        ("cuda-validation", "error validating cuda workload"),
        ("plugin-validation", "GPU resources are not discovered by the node"),
    ],
)
def test_a_validator_stops_at_its_failing_container(container, words):
    stage = broken("validation", container=container)

    pod = the_operand(stage, VALIDATOR)

    assert waiting(pod, container, "initContainerStatuses")["reason"] == "CrashLoopBackOff"
    assert words in log_of(stage, pod, container)[-1]


def test_a_crash_says_what_it_was_told_to_say():
    stage = broken("crash", says="cannot allocate memory")

    pod = the_operand(stage, PLUGIN)

    assert waiting(pod)["reason"] == "CrashLoopBackOff"
    assert status(pod)["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert log_of(stage, pod, "nvidia-device-plugin")[-1] == "cannot allocate memory"


def test_capacity_outlives_a_plugin_by_five_minutes():
    stage = broken("crash")

    soon = {part: status(stage.node(NODE))[part]["nvidia.com/gpu"] for part in ("capacity", "allocatable")}
    stage.run(300)
    late = status(stage.node(NODE))["capacity"]["nvidia.com/gpu"]

    assert soon == {"capacity": "8", "allocatable": "0"}
    assert late == "0"


@pytest.mark.parametrize("how", ["image", "headers", "nouveau", "runtime", "validation", "crash"])
def test_a_cured_operand_comes_up(how):
    stage = broken(how)

    stage.faults.clear()
    stage.run(240)

    assert all(is_true(pod, "Ready") for pod in stage.pods(NODE, namespace="gpu-operator"))
    assert status(stage.node(NODE))["allocatable"]["nvidia.com/gpu"] == "8"


def test_only_the_pods_of_one_version_are_struck():
    stage = a_fleet(2, faults=Board(BrokenOperand("image", version=NEW)))
    stage.run(30)
    before = is_true(stage.driver_pod(NODE), "Ready")

    stage.driver("h100", version=NEW)
    stage.run(120)

    assert before
    assert waiting(stage.driver_pod(NODE))["reason"] in ("ErrImagePull", "ImagePullBackOff")


def test_an_ailment_that_nobody_knows_is_refused():
    with pytest.raises(UnknownFault):
        parse(FAULTS, "broken_operand:how=sulks")
