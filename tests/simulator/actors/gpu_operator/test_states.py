"""One test for each row of the upgrade controller's state table."""

import pytest

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.policy import read_policy
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.faults import BadDriver, Board
from simulator.kinds import DAEMON_SET, DISRUPTION_BUDGET, POD
from tests.simulator.actors.stage import NEW, Stage, a_fleet

H100, A100 = "gpu-h100-001", "gpu-a100-002"
POLICY = {"autoUpgrade": True, "maxParallelUpgrades": 1, "maxUnavailable": "100%"}


def a_held_fleet(nodes: int = 2, **given) -> Stage:
    """Every node is out of date and held by the skip label."""
    stage = a_fleet(nodes, max_unavailable="100%", **given)
    stage.skip(*stage.gpu_nodes())
    stage.driver("h100", version=NEW)
    stage.run(5)
    return stage


def a_tenant(stage: Stage, node: str, **spec) -> dict:
    """A pod that nobody owns, with one GPU of a node whose own tenants are gone."""
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "busybox:1.37", "resources": resources}
    pod = {"metadata": {"name": "lonely"}, "spec": {"nodeName": node, "containers": [container], **spec}}
    return stage.store.create(POD, pod, "batch")


def empty(stage: Stage, node: str) -> None:
    for pod in stage.tenants(node):
        stage.store.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], grace_s=0)


class TestDoneOrUnknown:
    def test_done_becomes_required_when_the_pod_is_of_an_older_revision(self):
        stage = a_fleet()
        stage.skip(H100)

        stage.driver("h100", version=NEW)
        stage.run(5)

        assert stage.state(H100) == UpgradeState.REQUIRED
        assert stage.state(A100) == UpgradeState.DONE

    @pytest.mark.parametrize("key", [keys.REQUESTED, keys.SAFE_LOAD])
    def test_done_becomes_required_when_an_annotation_asks(self, key):
        stage = a_fleet()

        stage.annotate(H100, key, "true")
        stage.set_state(H100, "")
        stage.run(1)

        assert stage.history[H100][:2] == ["", UpgradeState.REQUIRED]

    def test_unknown_becomes_done_when_the_pod_is_in_sync(self):
        stage = a_fleet()

        stage.label(H100, **{keys.STATE: None})
        stage.run(1)

        assert stage.history[H100] == ["", UpgradeState.DONE]


class TestUpgradeRequired:
    def test_starts_when_a_slot_is_free(self):
        stage = a_held_fleet()

        stage.release(H100)
        stage.run(1)

        assert stage.history[H100][1] == UpgradeState.CORDON

    def test_stays_while_skipped(self):
        stage = a_held_fleet()

        stage.run(600)

        assert stage.state(H100) == UpgradeState.REQUIRED

    def test_goes_ahead_without_a_slot_when_somebody_has_cordoned_it(self):
        stage = a_held_fleet(4, max_parallel=1)
        busy, cordoned = "gpu-h100-001", "gpu-h100-002"
        stage.release(busy)
        stage.run(1)

        stage.cordon(cordoned)
        stage.release(cordoned)
        stage.run(1)

        assert stage.history[cordoned][1] == UpgradeState.CORDON

    def test_only_restarts_the_pod_when_the_driver_itself_stays(self):
        stage = a_fleet(max_unavailable="100%")
        tenants = {pod["metadata"]["uid"] for pod in stage.tenants(H100)}

        stage.driver("h100", labels={"team": "platform"})
        stage.until(lambda: stage.history.get(H100, [])[-1:] == [UpgradeState.DONE])

        assert stage.history[H100][:2] == [UpgradeState.REQUIRED, UpgradeState.POD_RESTART]
        assert tenants <= {pod["metadata"]["uid"] for pod in stage.tenants(H100)}


def test_cordon_required_is_cordoned_and_waits_for_jobs():
    stage = a_held_fleet()

    stage.release(H100)
    stage.run(1)

    assert stage.history[H100][1:3] == [UpgradeState.CORDON, UpgradeState.WAIT_FOR_JOBS]
    assert stage.is_cordoned(H100)


class TestWaitForJobs:
    WAIT = {"podSelector": "team=pretraining"}

    def test_waits_as_long_as_a_selected_pod_runs(self):
        stage = a_held_fleet()
        stage.driver("h100", upgradePolicy={**POLICY, "waitForCompletion": self.WAIT})

        stage.release(H100)
        stage.run(3600)

        assert stage.state(H100) == UpgradeState.WAIT_FOR_JOBS

    def test_goes_on_when_none_is_left(self):
        stage = a_held_fleet()
        stage.driver("h100", upgradePolicy={**POLICY, "waitForCompletion": self.WAIT})
        stage.release(H100)
        stage.run(10)

        empty(stage, H100)
        stage.run(121)

        assert UpgradeState.POD_DELETION in stage.history[H100]

    def test_goes_on_after_its_timeout(self):
        stage = a_held_fleet()
        waiting = {**self.WAIT, "timeoutSeconds": 300}
        stage.driver("h100", upgradePolicy={**POLICY, "waitForCompletion": waiting})
        stage.release(H100)
        stage.run(240)
        assert stage.state(H100) == UpgradeState.WAIT_FOR_JOBS

        stage.run(360)

        assert UpgradeState.POD_DELETION in stage.history[H100]


class TestPodDeletion:
    def test_goes_on_at_once_without_gpu_pods(self):
        stage = a_held_fleet()
        stage.cordon(H100)
        stage.settle()
        empty(stage, H100)

        stage.set_state(H100, UpgradeState.POD_DELETION)
        stage.settle()

        assert stage.state(H100) == UpgradeState.POD_RESTART

    def test_evicts_the_gpu_pods_then_goes_on(self):
        stage = a_held_fleet()
        evicted = {pod["metadata"]["uid"] for pod in stage.tenants(H100)}

        stage.release(H100)
        stage.until(lambda: UpgradeState.POD_RESTART in stage.history[H100])

        assert evicted
        assert not evicted & {pod["metadata"]["uid"] for pod in stage.pods()}
        assert "Deleted workload pods on the node for the driver upgrade" in stage.events(H100)

    @pytest.mark.parametrize(
        ("spec", "owner"),
        [({}, "nobody"), ({"volumes": [{"name": "scratch", "emptyDir": {}}]}, "nobody")],
        ids=["unmanaged", "emptyDir"],
    )
    def test_fails_when_a_pod_may_not_be_deleted(self, spec, owner):
        stage = a_held_fleet()
        stage.cordon(H100)
        stage.settle()
        empty(stage, H100)
        a_tenant(stage, H100, **spec)

        stage.set_state(H100, UpgradeState.POD_DELETION)
        stage.run(1)

        assert stage.state(H100) == UpgradeState.FAILED

    def test_drains_instead_where_the_policy_allows_it(self):
        stage = a_held_fleet()
        stage.driver("h100", upgradePolicy={**POLICY, "drain": {"enable": True, "force": True}})
        stage.cordon(H100)
        stage.settle()
        empty(stage, H100)
        a_tenant(stage, H100)

        stage.set_state(H100, UpgradeState.POD_DELETION)
        stage.run(1)

        assert UpgradeState.DRAIN in stage.history[H100]


class TestDrain:
    def test_goes_on_when_the_node_is_drained(self):
        stage = a_held_fleet()
        stage.driver("h100", upgradePolicy={**POLICY, "drain": {"enable": True, "force": True}})

        stage.set_state(H100, UpgradeState.DRAIN)
        stage.until(lambda: stage.state(H100) == UpgradeState.POD_RESTART)

        assert "Successfully drained the node" in stage.events(H100)

    def test_goes_on_where_drains_are_off(self):
        stage = a_held_fleet()

        stage.set_state(H100, UpgradeState.DRAIN)
        stage.settle()

        assert UpgradeState.POD_RESTART in stage.history[H100]

    def test_fails_when_a_budget_holds_out_until_the_timeout(self):
        stage = a_held_fleet()
        budget = {"metadata": {"name": "never"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {}}}}
        budget["spec"]["selector"] = {"matchLabels": {"team": "pretraining"}}
        stage.store.create(DISRUPTION_BUDGET, budget, "pretraining")
        drain = {"enable": True, "force": True, "timeoutSeconds": 60}
        stage.driver("h100", upgradePolicy={**POLICY, "drain": drain})

        stage.set_state(H100, UpgradeState.DRAIN)
        stage.run(65)

        assert stage.state(H100) == UpgradeState.FAILED
        assert any(words.startswith("Failed to drain the node, ") for words in stage.events(H100))


class TestPodRestart:
    def test_goes_on_when_the_new_driver_pod_is_ready(self):
        stage = a_held_fleet()
        old = stage.driver_pod(H100)["metadata"]["uid"]

        stage.release(H100)
        stage.until(lambda: UpgradeState.VALIDATION in stage.history[H100])

        assert stage.driver_pod(H100)["metadata"]["uid"] != old

    def test_fails_after_more_than_ten_restarts(self):
        stage = a_held_fleet(faults=Board(BadDriver(NEW, how="crash")))

        stage.release(H100)
        stage.until(lambda: stage.state(H100) == UpgradeState.FAILED)

        (report,) = stage.driver_pod(H100)["status"]["containerStatuses"]
        assert report["restartCount"] > 10
        assert stage.is_cordoned(H100)


class TestValidation:
    def test_goes_on_when_the_validator_is_ready(self):
        stage = a_held_fleet()

        stage.set_state(H100, UpgradeState.VALIDATION)
        stage.run(1)

        assert UpgradeState.UNCORDON in stage.history[H100]

    def test_leaves_a_node_cordoned_that_was_so_before(self):
        """Z8: by its note of that, and by nothing else, a node stays cordoned until somebody has judged it."""
        stage = a_fleet(max_unavailable="100%")
        stage.cordon(H100)
        stage.settle()

        stage.driver("h100", version=NEW)
        stage.until(lambda: stage.history.get(H100, [])[-1:] == [UpgradeState.DONE])

        assert UpgradeState.UNCORDON not in stage.history[H100]
        assert stage.is_cordoned(H100)
        assert keys.WAS_CORDONED not in stage.node(H100)["metadata"]["annotations"]

    def test_fails_when_the_validator_is_not_ready_for_600_s(self):
        stage = a_held_fleet(faults=Board(BadDriver(NEW, how="validator")))
        stage.release(H100)
        stage.until(lambda: UpgradeState.VALIDATION in stage.history[H100])

        took_s = stage.until(lambda: UpgradeState.FAILED in stage.history[H100])

        assert 600 <= took_s <= 600 + 2 * 120
        # The driver pod itself is well, so the failure lasts for one look: the node is uncordoned unvalidated.
        stage.run(1)
        assert stage.history[H100][-3:] == [UpgradeState.FAILED, UpgradeState.UNCORDON, UpgradeState.DONE]

    def test_stays_for_ever_without_a_validator_pod(self):
        stage = a_held_fleet()
        stage.store.delete(DAEMON_SET, "nvidia-operator-validator", keys.NAMESPACE)
        stage.run(30)

        stage.set_state(H100, UpgradeState.VALIDATION)
        stage.run(3600)

        assert stage.state(H100) == UpgradeState.VALIDATION
        assert keys.VALIDATION_SINCE not in stage.node(H100)["metadata"]["annotations"]


def test_uncordon_required_is_uncordoned_and_done():
    stage = a_fleet()
    stage.cordon(H100)

    stage.set_state(H100, UpgradeState.UNCORDON)
    stage.run(1)

    assert stage.state(H100) == UpgradeState.DONE
    assert not stage.is_cordoned(H100)


def test_failed_goes_on_without_validation_once_the_driver_pod_is_well():
    """Z8: the operator uncordons, and nothing of ours has looked."""
    stage = a_held_fleet(faults=Board(BadDriver(NEW, how="crash")))
    stage.release(H100)
    stage.until(lambda: stage.state(H100) == UpgradeState.FAILED)

    stage.faults.clear()
    stage.until(lambda: stage.state(H100) == UpgradeState.DONE)

    assert UpgradeState.VALIDATION not in stage.history[H100]


def test_a_policy_of_an_nvidia_driver_is_automatic_by_default():
    assert read_policy({"autoUpgrade": True}).is_auto
    assert not read_policy(None).is_auto
