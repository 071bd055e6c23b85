import pytest

from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import is_true, is_unschedulable, labels, node_of
from simulator.faults import (
    FAULTS,
    BadDriver,
    Board,
    FlappingNode,
    HeldDriver,
    RefusedPods,
    StaleLabels,
    StuckDrain,
    UncordoningManager,
)
from simulator.faults.board import UnknownFault, parse
from simulator.kinds import DISRUPTION_BUDGET, EVENT, NODE, POD
from simulator.refusals import Refused
from tests.simulator.actors.stage import NEW, a_fleet

FIRST, SECOND = "gpu-h100-001", "gpu-h100-002"
DRIVER_PODS, PLUGIN = "app.kubernetes.io/component=nvidia-driver", "nvidia-device-plugin-daemonset"
DRIVER = "nvidia.com/cuda.driver-version.full"


def test_a_fault_is_read_from_one_word():
    fault = parse(FAULTS, "bad_driver:version=580.126.20,kernel=6.8.0-64-generic,how=crash")

    assert fault == BadDriver("580.126.20", "6.8.0-64-generic", "crash")


@pytest.mark.parametrize("text", ["nonsense", "bad_driver:colour=red", "bad_driver:version=1,how=loudly"])
def test_an_unknown_fault_is_refused(text):
    with pytest.raises(UnknownFault):
        parse(FAULTS, text)


def test_a_flapping_node_comes_and_goes_until_it_is_cured():
    stage = a_fleet(2)

    stage.faults.put(FlappingNode(FIRST, ready_s=60, unready_s=30))
    stage.run(10)
    is_down = not is_true(stage.node(FIRST), "Ready")
    stage.run(30)
    is_up = is_true(stage.node(FIRST), "Ready")
    stage.run(60)
    is_down_again = not is_true(stage.node(FIRST), "Ready")
    stage.faults.clear("flapping_node")
    stage.run(300)

    assert (is_down, is_up, is_down_again) == (True, True, True)
    assert is_true(stage.node(FIRST), "Ready")
    assert not stage.node(FIRST)["spec"].get("taints")


def test_a_stuck_drain_refuses_evictions_and_fails_the_upgrade():
    stage = a_fleet(4, faults=Board(StuckDrain(FIRST)))
    pod = stage.tenants(FIRST)[0]
    stage.run(1)

    with pytest.raises(Refused) as refusal:
        stage.store.evict(pod["metadata"]["name"], pod["metadata"]["namespace"])
    stage.driver("h100", version=NEW)
    stage.until(lambda: stage.state(FIRST) == UpgradeState.FAILED)

    assert refusal.value.status == 429
    assert any("global timeout reached" in words for words in stage.events(FIRST))


def test_a_cured_drain_leaves_the_budgets_as_they_were():
    stage = a_fleet(4)
    before = {each["metadata"]["name"]: each["spec"] for each in stage.store.list(DISRUPTION_BUDGET)[0]}

    for node in stage.gpu_nodes():
        stage.faults.put(StuckDrain(node))
    stage.run(1)
    during = {each["spec"]["maxUnavailable"] for each in stage.store.list(DISRUPTION_BUDGET)[0]}
    stage.faults.clear()
    stage.run(1)

    assert during == {0}
    assert {each["metadata"]["name"]: each["spec"] for each in stage.store.list(DISRUPTION_BUDGET)[0]} == before
    assert all(node_of(pod) for pod in stage.tenants(FIRST))


def test_a_bad_driver_may_do_harm_on_one_node_alone():
    fault = BadDriver(NEW, node=FIRST)

    assert fault.strikes(driver=NEW, kernel="any", node=FIRST)
    assert not fault.strikes(driver=NEW, kernel="any", node="gpu-h100-002")


def cordoned_and_upgraded(*faults) -> bool:
    """Whether it is still cordoned when that is over."""
    stage = a_fleet(4, faults=Board(*faults))
    stage.store.patch(NODE, FIRST, {"spec": {"unschedulable": True}}, how="merge")
    stage.run(1)
    stage.driver("h100", version=NEW)
    stage.until(lambda: UpgradeState.DONE in stage.history.get(FIRST, ()))
    return is_unschedulable(stage.node(FIRST))


def test_a_driver_manager_may_take_a_cordon_off_that_somebody_else_had_set():
    assert cordoned_and_upgraded()
    assert not cordoned_and_upgraded(UncordoningManager(FIRST))


def test_labels_that_nobody_writes_name_the_driver_of_before():
    stage = a_fleet(4, faults=Board(StaleLabels(FIRST)))
    those = [node for node in stage.gpu_nodes() if "h100" in node]
    before = labels(stage.node(FIRST))[DRIVER]

    stage.driver("h100", version=NEW)
    stage.until(lambda: all(UpgradeState.DONE in stage.history.get(node, ()) for node in those))
    stage.run(120)
    after = {node: labels(stage.node(node))[DRIVER] for node in those}
    stage.faults.clear("stale_labels")
    stage.run(10)

    assert before != NEW
    assert after == {node: before if node == FIRST else NEW for node in after}
    assert labels(stage.node(FIRST))[DRIVER] == NEW


def test_a_driver_that_a_program_uses_is_not_unloaded_until_it_ends():
    stage = a_fleet(4, faults=Board(HeldDriver(FIRST)))
    stage.driver("h100", version=NEW)
    stage.until(lambda: UpgradeState.FAILED in stage.history.get(FIRST, ()))
    (driver_pod,) = stage.pods(FIRST, DRIVER_PODS)
    (manager,) = driver_pod["status"]["initContainerStatuses"]

    stage.faults.clear("held_driver")
    stage.until(lambda: stage.state(FIRST) == UpgradeState.DONE)

    assert manager["restartCount"] > 10
    assert labels(stage.node(FIRST))[DRIVER] == NEW


def test_a_driver_pod_that_is_refused_is_never_made_and_no_node_moves():
    stage = a_fleet(8, faults=Board(RefusedPods(FIRST)), max_unavailable="100%")
    stage.skip(SECOND)
    stage.driver("h100", version=NEW)
    stage.until(lambda: stage.state(FIRST) == UpgradeState.POD_RESTART)
    stage.run(120)
    stage.release(SECOND)
    stage.run(1800)
    refused, waits = stage.pods(FIRST, DRIVER_PODS), (stage.state(FIRST), stage.state(SECOND))
    told = {each["message"] for each in stage.store.list(EVENT)[0] if each["reason"] == "FailedCreate"}

    stage.faults.clear("refused_pods")
    stage.until(lambda: {stage.state(FIRST), stage.state(SECOND)} == {UpgradeState.DONE})

    assert refused == []
    assert waits == (UpgradeState.POD_RESTART, UpgradeState.REQUIRED)
    assert all("admission webhook" in message for message in told)
    assert told


def test_only_pods_of_that_operand_are_refused():
    stage = a_fleet(4, faults=Board(RefusedPods(FIRST, app="nvidia-dcgm-exporter")))
    for pod in stage.pods(FIRST, f"app in (nvidia-dcgm-exporter,{PLUGIN})"):
        stage.store.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"])

    stage.run(300)

    assert stage.pods(FIRST, "app=nvidia-dcgm-exporter") == []
    assert len(stage.pods(FIRST, f"app={PLUGIN}")) == 1
