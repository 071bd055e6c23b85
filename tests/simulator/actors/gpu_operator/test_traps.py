"""What surprises people who drive the upgrade controller (nvidia.md 2.3, 2.4, 2.5, 2.8)."""

import pytest

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.gpu_operator.release import Release
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import labels
from simulator.faults import BadDriver, Board
from simulator.fleets.small import DRIVER_NOW
from simulator.kinds import DAEMON_SET, POD
from tests.simulator.actors.stage import NEW, Stage, a_fleet

FIRST, SECOND = "gpu-h100-001", "gpu-h100-002"


def a_fleet_put_back(version: str = "v26.7.0") -> Stage:
    """Two held nodes; the version was changed, and changed back."""
    stage = a_fleet(4, release=Release(version), max_unavailable="100%")
    stage.skip(FIRST, SECOND)
    stage.driver("h100", version=NEW)
    stage.run(5)
    stage.driver("h100", version=DRIVER_NOW)
    stage.run(5)
    return stage


class TestRollback:
    def test_until_26_7_held_nodes_lose_their_pods_for_nothing_when_only_released(self):
        stage = a_fleet_put_back("v26.3.3")
        tenants = {pod["metadata"]["uid"] for pod in stage.tenants(FIRST)}

        stage.release(FIRST)
        stage.until(lambda: stage.state(FIRST) == UpgradeState.DONE)

        assert UpgradeState.POD_DELETION in stage.history[FIRST]
        assert tenants
        assert not tenants & {pod["metadata"]["uid"] for pod in stage.pods()}

    def test_from_26_7_they_are_only_cordoned_for_a_moment(self):
        """The digest of the old pod equals that of the template put back: the restart-only path."""
        stage = a_fleet_put_back()
        tenants = {pod["metadata"]["uid"] for pod in stage.tenants(FIRST)}

        stage.release(FIRST)
        stage.until(lambda: stage.state(FIRST) == UpgradeState.DONE)

        assert stage.history[FIRST][1:2] == [UpgradeState.POD_RESTART]
        assert tenants <= {pod["metadata"]["uid"] for pod in stage.tenants(FIRST)}

    def test_held_nodes_stay_as_they_are_when_their_state_is_cleared_first(self):
        stage = a_fleet_put_back()
        tenants = {pod["metadata"]["uid"] for pod in stage.tenants(FIRST)}

        stage.label(FIRST, **{keys.STATE: None})
        stage.until(lambda: stage.state(FIRST) == UpgradeState.DONE)
        stage.release(FIRST)
        stage.run(600)

        assert stage.history[FIRST][-2:] == ["", UpgradeState.DONE]
        assert tenants <= {pod["metadata"]["uid"] for pod in stage.tenants(FIRST)}

    def test_nodes_that_had_moved_go_back(self):
        stage = a_fleet(4, max_unavailable="100%")
        stage.skip(SECOND)
        stage.driver("h100", version=NEW)
        stage.until(lambda: stage.state(FIRST) == UpgradeState.DONE and FIRST in stage.history)

        stage.driver("h100", version=DRIVER_NOW)
        stage.until(lambda: stage.history[FIRST].count(UpgradeState.DONE) == 2)
        stage.run(10)

        assert labels(stage.node(FIRST))["nvidia.com/cuda.driver-version.full"] == DRIVER_NOW


def test_a_failed_node_holds_the_only_slot():
    stage = a_fleet(4, max_parallel=1, max_unavailable="100%", faults=Board(BadDriver(NEW, how="crash")))
    stage.driver("h100", version=NEW)
    stage.until(lambda: UpgradeState.FAILED in stage.states().values())

    stage.run(1800)

    assert sorted(stage.states().values()).count(UpgradeState.REQUIRED) == 1


def test_a_driver_pod_that_is_recreated_takes_the_new_driver_held_or_not():
    stage = a_fleet(4, max_unavailable="100%")
    stage.skip(FIRST, SECOND)
    stage.driver("h100", version=NEW)
    stage.run(5)
    for pod in stage.tenants(FIRST):
        stage.store.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], grace_s=0)
    stage.cordon(FIRST)

    stage.store.delete(POD, stage.driver_pod(FIRST)["metadata"]["name"], keys.NAMESPACE)
    stage.run(300)

    assert labels(stage.node(FIRST))["nvidia.com/cuda.driver-version.full"] == NEW
    assert stage.state(FIRST) == UpgradeState.REQUIRED


def test_modules_that_workloads_use_are_not_unloaded():
    stage = a_fleet(4, max_unavailable="100%")
    stage.skip(FIRST, SECOND)
    stage.driver("h100", version=NEW)
    stage.run(5)

    stage.store.delete(POD, stage.driver_pod(FIRST)["metadata"]["name"], keys.NAMESPACE)
    stage.run(120)

    (report,) = stage.driver_pod(FIRST)["status"]["initContainerStatuses"]
    assert report["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert labels(stage.node(FIRST))["nvidia.com/gpu.deploy.device-plugin"] == "true"


def test_auto_upgrade_off_takes_the_state_labels_away():
    stage = a_fleet(4)

    stage.driver("h100", upgradePolicy={"autoUpgrade": False})
    stage.run(5)

    assert stage.states() == {FIRST: "", SECOND: "", "gpu-a100-003": "upgrade-done", "gpu-a100-004": "upgrade-done"}
    assert keys.ENABLED not in stage.node(FIRST)["metadata"]["annotations"]


def test_auto_upgrade_cannot_be_switched_off_by_leaving_it_out():
    stage = a_fleet(2)

    stage.driver("h100", upgradePolicy={"autoUpgrade": None})

    assert stage.store.get(NVIDIA_DRIVER, "h100")["spec"]["upgradePolicy"]["autoUpgrade"] is True


def test_sandbox_workloads_switch_the_controller_off():
    stage = a_fleet(2)

    patch = {"spec": {"sandboxWorkloads": {"enabled": True}}}
    stage.store.patch(CLUSTER_POLICY, "cluster-policy", patch, how="merge")
    stage.run(5)

    assert set(stage.states().values()) == {""}


def test_two_drivers_that_claim_one_node_are_both_refused_and_nothing_moves():
    stage = a_fleet(4)
    before = {node: labels(stage.node(node)).get(keys.OWNER) for node in stage.gpu_nodes()}
    canary = {"metadata": {"name": "canary"}, "spec": {"version": NEW, "nodeSelector": {keys.PRESENT: "true"}}}

    stage.store.create(NVIDIA_DRIVER, canary)
    stage.run(5)

    said = {name: stage.store.get(NVIDIA_DRIVER, name)["status"] for name in ("a100", "h100", "canary")}
    reasons = {condition["reason"] for status in said.values() for condition in status["conditions"]}
    assert {status["state"] for status in said.values()} == {"notReady"}
    assert "ConflictingNodeSelector" in reasons
    assert {node: labels(stage.node(node)).get(keys.OWNER) for node in stage.gpu_nodes()} == before


@pytest.mark.parametrize(("version", "started"), [("v26.3.3", 1), ("v26.7.0", 2)])
def test_slots_are_counted_over_all_drivers_until_26_7_then_for_each(version, started):
    stage = a_fleet(4, release=Release(version), max_parallel=1, max_unavailable="100%")

    stage.driver("h100", version=NEW)
    stage.driver("a100", version=NEW)
    stage.run(2)

    moving = [state for state in stage.states().values() if state not in ("upgrade-required", "upgrade-done")]
    assert len(moving) == started


def test_the_status_admits_a_rollout_from_26_7():
    stage = a_fleet(4, max_unavailable="100%")

    stage.driver("h100", version=NEW)
    stage.run(10)

    assert stage.store.get(NVIDIA_DRIVER, "h100")["status"]["state"] == "notReady"
    assert stage.store.get(CLUSTER_POLICY, "cluster-policy")["status"]["state"] == "notReady"


def test_the_driver_set_has_one_pod_template_for_each_driver_and_os():
    stage = a_fleet(4)

    sets, _, _ = stage.store.list(DAEMON_SET, label_selector=f"{keys.COMPONENT}={keys.DRIVER_COMPONENT}")

    assert len(sets) == 2
    for each in sets:
        pod_spec = each["spec"]["template"]["spec"]
        assert each["spec"]["updateStrategy"]["type"] == "OnDelete"
        assert pod_spec["containers"][0]["image"] == f"nvcr.io/nvidia/driver:{DRIVER_NOW}-ubuntu22.04"
        assert pod_spec["nodeSelector"].keys() == {keys.OWNER, keys.DEPLOY_DRIVER}
