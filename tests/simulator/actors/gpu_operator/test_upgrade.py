"""A whole upgrade, seen from the node (hazards Z21, Z24, Z26)."""

import pytest

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.node.pausing import paused, resumed
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.gpu_operator.upgrade import PERIOD_S
from simulator.actors.objects import is_true, labels
from simulator.faults import BadDriver, Board
from simulator.fleets.small import KERNELS
from simulator.kinds import NODE, POD
from tests.simulator.actors.stage import NEW, Stage, a_fleet

FIRST, SECOND = "gpu-h100-001", "gpu-h100-002"
FULL = "nvidia.com/cuda.driver-version.full"


def seen_on(stage: Stage, node: str, read) -> list:
    """What `read` of a node was, each value once, in order."""
    values: list = []

    def note(_was, now):
        if now and now["metadata"]["name"] == node and values[-1:] != [read(now)]:
            values.append(read(now))

    stage.play.world[NODE].on_change(note)
    return values


def upgraded(stage: Stage, *nodes: str, version: str = NEW) -> float:
    """Release these nodes only; the cluster seconds until they are done."""
    stage.skip(*stage.gpu_nodes())
    stage.driver("h100", version=version)
    stage.run(5)
    stage.release(*nodes)
    return stage.until(lambda: all(stage.history.get(node, [])[-1:] == [UpgradeState.DONE] for node in nodes))


def allocatable(node: dict) -> int:
    return int(node["status"]["allocatable"]["nvidia.com/gpu"])


def test_a_node_goes_through_every_state_in_order():
    stage = a_fleet(4)

    upgraded(stage, FIRST)

    assert stage.history[FIRST] == [
        "upgrade-required",
        "cordon-required",
        "wait-for-jobs-required",
        "pod-deletion-required",
        "pod-restart-required",
        "validation-required",
        "uncordon-required",
        "upgrade-done",
    ]
    assert stage.history[SECOND] == ["upgrade-required"]


def test_it_takes_two_to_four_minutes_of_cluster_time():
    stage = a_fleet(4)

    took_s = upgraded(stage, FIRST)

    assert 60 <= took_s <= 240


def test_the_version_label_vanishes_and_comes_back_new():
    stage = a_fleet(4)
    versions = seen_on(stage, FIRST, lambda node: labels(node).get(FULL))

    upgraded(stage, FIRST)
    stage.run(10)

    assert versions == ["580.95.05", None, NEW]
    assert labels(stage.node(FIRST))["nvidia.com/cuda.driver-version.revision"] == "20"
    assert labels(stage.node(FIRST))["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"


def test_operands_pause_and_resume():
    stage = a_fleet(4)
    gate = "nvidia.com/gpu.deploy.device-plugin"
    values = seen_on(stage, FIRST, lambda node: labels(node).get(gate))

    upgraded(stage, FIRST)

    assert values == ["true", keys.PAUSED, "true"]


@pytest.mark.parametrize("value", ["true", "false", "custom", ""])
def test_what_is_paused_resumes_as_it_was(value):
    assert resumed(paused(value)) == value
    assert paused(paused(value)) == paused(value)


def test_allocatable_goes_with_the_plugin_while_capacity_stays():
    stage = a_fleet(4)
    free = seen_on(stage, FIRST, allocatable)
    capacity = seen_on(stage, FIRST, lambda node: node["status"]["capacity"]["nvidia.com/gpu"])

    upgraded(stage, FIRST)

    assert free == [8, 0, 8]
    assert capacity == ["8"]


def test_a_plugin_that_stays_away_takes_the_capacity_with_it():
    stage = a_fleet(2)

    stage.label(FIRST, **{"nvidia.com/gpu.deploy.device-plugin": "false"})
    stage.run(400)

    assert stage.node(FIRST)["status"]["capacity"]["nvidia.com/gpu"] == "0"


def test_the_validator_runs_again():
    stage = a_fleet(4)
    (before,) = stage.pods(FIRST, f"app={keys.VALIDATOR_APP}")

    upgraded(stage, FIRST)

    (after,) = stage.pods(FIRST, f"app={keys.VALIDATOR_APP}")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["creationTimestamp"] > before["metadata"]["creationTimestamp"]


def test_a_whole_pool_moves_and_the_fleet_is_as_busy_as_before():
    stage = a_fleet(6)
    nodes = [node for node in stage.gpu_nodes() if "h100" in node]
    running = sum(is_true(pod, "Ready") for pod in stage.pods())

    upgraded(stage, *nodes)
    stage.run(60)

    assert {labels(stage.node(node))[FULL] for node in nodes} == {NEW}
    assert sum(is_true(pod, "Ready") for pod in stage.pods()) == running


def test_the_operator_looks_again_every_two_minutes_and_no_driver_pod_that_is_ready_wakes_it():
    """As measured on the operator v26.7.0: a node stands in pod-restart-required after its driver is loaded."""
    stage = a_fleet(1)

    stage.skip(FIRST)
    stage.driver("h100", version=NEW)
    stage.run(5)
    stage.release(FIRST)
    stage.until(lambda: stage.state(FIRST) == UpgradeState.POD_RESTART)
    loaded_s = stage.until(lambda: _drives(stage, NEW))
    waited_s = stage.until(lambda: stage.state(FIRST) != UpgradeState.POD_RESTART)

    assert loaded_s < PERIOD_S
    assert 5 < waited_s <= PERIOD_S


def _drives(stage: Stage, version: str) -> bool:
    """Whether the driver pod of this version is Ready."""
    pods = [pod for pod in stage.play.world[POD].all() if labels(pod).get(keys.COMPONENT) == keys.DRIVER_COMPONENT]
    return any(is_true(pod, "Ready") and version in pod["spec"]["containers"][0]["image"] for pod in pods)


class TestBadDriver:
    def bad_fleet(self, how: str) -> tuple[Stage, str, str]:
        """The stage, a node whose kernel the driver harms, and one whose kernel it does not."""
        stage = a_fleet(6, faults=Board(BadDriver(NEW, kernel=KERNELS[1], how=how)))
        kernels = {node: stage.node(node)["status"]["nodeInfo"]["kernelVersion"] for node in stage.gpu_nodes()}
        named = {kernel: node for node, kernel in kernels.items() if "h100" in node}
        return stage, named[KERNELS[1]], named[KERNELS[0]]

    def crashing(self, stage: Stage, node: str) -> list[str]:
        states = [(pod, pod["status"].get("containerStatuses") or []) for pod in stage.tenants(node)]
        return [pod["metadata"]["name"] for pod, reports in states for report in reports if report["restartCount"]]

    def test_that_breaks_workloads_leaves_the_operator_content(self):
        stage, bad, good = self.bad_fleet("workloads")

        upgraded(stage, bad, good)
        stage.run(120)

        assert stage.state(bad) == stage.state(good) == UpgradeState.DONE
        assert self.crashing(stage, bad)
        assert not self.crashing(stage, good)
        assert not any(is_true(pod, "Ready") for pod in stage.tenants(bad))

    def test_that_breaks_workloads_strikes_what_runs_already_and_heals(self):
        stage = a_fleet(4)

        stage.faults.put(BadDriver("580.95.05", how="workloads"))
        stage.run(60)
        struck = self.crashing(stage, FIRST)
        stage.faults.clear("bad_driver")
        stage.run(90)

        assert struck
        assert all(is_true(pod, "Ready") for pod in stage.tenants(FIRST))

    def test_that_loses_gpus_is_seen_in_allocatable_alone(self):
        stage, bad, good = self.bad_fleet("gpus_lost")

        upgraded(stage, bad, good)

        assert allocatable(stage.node(bad)) == 7
        assert allocatable(stage.node(good)) == 8
        assert stage.node(bad)["status"]["capacity"]["nvidia.com/gpu"] == "8"

    def test_that_crashes_fails_only_where_its_kernel_is(self):
        stage, bad, good = self.bad_fleet("crash")

        upgraded(stage, good)
        stage.release(bad)
        stage.until(lambda: stage.state(bad) == UpgradeState.FAILED)

        assert stage.state(good) == UpgradeState.DONE
        assert FULL not in labels(stage.node(bad))
