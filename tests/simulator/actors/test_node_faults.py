"""Faults of nodes as the API shows them: they begin, and they end."""

import pytest

from simulator.actors.objects import condition, is_true, labels, phase
from simulator.faults import FAULTS, FailingWorkload, LeftPaused, NodeCondition, RuntimeRace
from simulator.faults.board import Board, UnknownFault, parse
from simulator.faults.fallen_gpu import FallenGpu
from simulator.kinds import EVENT
from tests.simulator.actors.stage import a_fleet, a_mix

FIRST, SECOND = "gpu-h100-001", "gpu-a100-002"
PAUSED = "paused-for-driver-upgrade"


def restarts(pods):
    return sum(each["restartCount"] for pod in pods for each in pod["status"].get("containerStatuses") or ())


@pytest.mark.parametrize("type_", ["GpuMemWatch", "SysLogsXIDError", "KernelDeadlock", "GPUMissing"])
def test_a_watchman_says_what_is_wrong_and_that_it_is_well_again(type_):
    stage = a_fleet(2)

    stage.faults.put(NodeCondition(FIRST, type_))
    stage.run(1)
    told = condition(stage.node(FIRST), type_)
    stage.faults.clear("node_condition")
    stage.run(1)

    assert (told["status"], told["reason"]) == ("True", f"{type_}IsNotHealthy")
    assert condition(stage.node(FIRST), type_)["status"] == "False"
    assert not condition(stage.node(SECOND), type_)
    assert is_true(stage.node(FIRST), "Ready")


def test_a_watchman_does_not_speak_for_the_kubelet():
    with pytest.raises(UnknownFault):
        parse(FAULTS, f"node_condition:node={FIRST},type=Ready")


def test_pods_of_one_template_fail_on_one_node_and_run_elsewhere():
    stage = a_mix("a100=1", 2)
    first, second = stage.gpu_nodes()

    stage.faults.put(FailingWorkload(first))
    stage.run(120)
    failing, well = restarts(stage.tenants(first)), restarts(stage.tenants(second))
    stage.faults.clear("failing_workload")
    stage.run(600)

    assert failing > 2
    assert well == 0
    assert all(is_true(pod, "Ready") for pod in stage.tenants(first))


def test_only_the_pods_with_one_gpu_fail():
    stage = a_mix("a100=1", 1)
    (node,) = stage.gpu_nodes()
    held = {pod["metadata"]["name"]: stage.play.kubelets.holdings.gpus_of(pod) for pod in stage.tenants(node)}

    stage.faults.put(FailingWorkload(node, gpu=3))
    stage.run(120)

    crashing = {pod["metadata"]["name"] for pod in stage.tenants(node) if restarts([pod])}
    assert crashing == {called for called, gpus in held.items() if 3 in gpus}
    assert len(crashing) == 1


def test_a_job_whose_pod_fails_gets_another_one_and_counts():
    stage = a_mix("spot=1", 1)
    (node,) = stage.gpu_nodes()
    before = {pod["metadata"]["name"] for pod in stage.tenants(node)}

    stage.faults.put(FailingWorkload(node, after_s=60, exit_code=137))
    stage.run(50)
    stage.faults.put(NodeCondition(node))  # another one does not begin it anew
    stage.run(30)
    pods = stage.pods(node, "team=batch")

    failed = [pod for pod in pods if phase(pod) == "Failed"]
    assert {pod["metadata"]["name"] for pod in failed} == before
    assert failed[0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137
    assert any(phase(pod) == "Running" for pod in pods)


def test_a_pause_left_behind_keeps_operands_away_until_somebody_ends_it():
    stage = a_fleet(2)

    stage.faults.put(LeftPaused(FIRST, "device-plugin"))
    stage.run(120)
    left, offered = labels(stage.node(FIRST)), stage.node(FIRST)["status"]["allocatable"]["nvidia.com/gpu"]
    away = stage.pods(FIRST, "app=nvidia-device-plugin-daemonset")
    stage.faults.clear("left_paused")
    stage.run(120)

    assert [key for key, value in left.items() if value == PAUSED] == ["nvidia.com/gpu.deploy.device-plugin"]
    assert (offered, away) == ("0", [])
    assert PAUSED not in labels(stage.node(FIRST)).values()
    assert stage.node(FIRST)["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_a_pause_of_all_is_of_what_was_there():
    stage = a_fleet(2)

    stage.faults.put(LeftPaused(FIRST))
    stage.run(120)
    left = [key for key, value in labels(stage.node(FIRST)).items() if value == PAUSED]

    assert "nvidia.com/gpu.deploy.dcgm-exporter" in left
    assert not stage.pods(FIRST, "app=nvidia-dcgm-exporter")
    assert "nvidia.com/gpu.deploy.driver" not in left


def test_a_kubelet_that_is_up_before_its_runtime():
    stage = a_mix("a100=1", 1)
    (node,) = stage.gpu_nodes()
    before = stage.node(node)["status"]["nodeInfo"]["bootID"]
    held = {pod["metadata"]["name"] for pod in stage.tenants(node)}

    stage.faults.put(RuntimeRace(node, seconds=60))
    stage.run(5)
    during = condition(stage.node(node), "Ready")
    turned_away = {pod["metadata"]["name"] for pod in stage.tenants(node) if phase(pod) == "Failed"}
    stage.run(60)

    told = [each["reason"] for each in stage.store.list(EVENT, "default")[0]]
    assert (during["status"], during["reason"]) == ("False", "KubeletNotReady")
    assert turned_away == held
    assert "Rebooted" in told
    assert is_true(stage.node(node), "Ready")
    assert stage.node(node)["status"]["nodeInfo"]["bootID"] != before


def test_a_race_that_is_ended_is_over_at_once():
    stage = a_fleet(2)

    stage.faults.put(RuntimeRace(FIRST, seconds=3600))
    stage.run(5)
    was_down = not is_true(stage.node(FIRST), "Ready")
    stage.faults.clear("runtime_race")
    stage.run(1)

    assert was_down
    assert is_true(stage.node(FIRST), "Ready")


def test_a_reboot_mends_what_a_reboot_mends_on_its_node():
    lost, broken, other = FallenGpu(FIRST, gpu=1), FallenGpu(FIRST, gpu=2, stays=True), FallenGpu(SECOND)
    board = Board(lost, broken, other, NodeCondition(FIRST, "GpuMemWatch"))
    board.reboot(FIRST)
    assert board.active(FallenGpu) == [broken, other]
    assert board.active(NodeCondition)
