"""Driver upgrades where ClusterPolicy runs the driver, and where DRA offers the GPUs."""

from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, GPU_CLUSTER, NVIDIA_DRIVER
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import labels, spec, status
from simulator.kinds import DAEMON_SET, RESOURCE_CLAIM, RESOURCE_SLICE
from tests.simulator.actors.stage import NEW, a_mix

DRIVER_SET = "nvidia-driver-daemonset"


def driver_image(stage):
    found = stage.store.get(DAEMON_SET, DRIVER_SET, "gpu-operator")
    return found["spec"]["template"]["spec"]["containers"][0]["image"]


def ask(stage, **driver):
    stage.store.patch(CLUSTER_POLICY, "cluster-policy", {"spec": {"driver": driver}}, how="merge")


def all_done(stage, version):
    pods = stage.pods(selector="app.kubernetes.io/component=nvidia-driver")
    return set(stage.states().values()) <= {UpgradeState.DONE} and all(
        f":{version}-" in pod["spec"]["containers"][0]["image"] for pod in pods
    )


def test_cluster_policy_runs_one_driver_set_that_waits_for_deletion():
    stage = a_mix("h100=1,a100=1", 2, mode="cluster-policy")

    found = stage.store.get(DAEMON_SET, DRIVER_SET, "gpu-operator")

    assert found["spec"]["updateStrategy"]["type"] == "OnDelete"
    assert status(found)["numberReady"] == 2
    assert stage.store.list(NVIDIA_DRIVER)[0] == []


def test_a_new_version_in_cluster_policy_rolls_through_the_upgrade_states():
    stage = a_mix("h100=1,a100=1", 2, mode="cluster-policy", max_parallel=1)

    ask(stage, version=NEW)
    stage.until(lambda: all_done(stage, NEW))

    assert driver_image(stage) == f"nvcr.io/nvidia/driver:{NEW}-ubuntu22.04"
    assert stage.history["gpu-h100-001"][0] == UpgradeState.REQUIRED
    assert {labels(stage.node(node))["nvidia.com/cuda.driver-version.full"] for node in stage.gpu_nodes()} == {NEW}


def test_all_driver_nodes_are_counted_together():
    stage = a_mix("h100=1,a100=1", 4, mode="cluster-policy", max_parallel=1, max_unavailable="100%")
    ask(stage, version=NEW)

    busy = []
    idle = {UpgradeState.DONE, UpgradeState.REQUIRED, ""}
    stage.until(lambda: busy.append(sum(each not in idle for each in stage.states().values())) or all_done(stage, NEW))

    assert max(busy) == 1


def test_a_preinstalled_driver_is_left_alone():
    stage = a_mix("h100=1,preinstalled=1", 2, mode="cluster-policy")

    ask(stage, version=NEW)
    stage.until(lambda: stage.state("gpu-h100-001") == UpgradeState.DONE and NEW in driver_image(stage))
    stage.run(300)

    assert labels(stage.node("gpu-preinstalled-001"))["nvidia.com/cuda.driver-version.full"] == "570.172.08"
    assert "gpu-preinstalled-001" not in stage.history


def test_all_labels_of_gfd_vanish_while_it_is_paused():
    stage = a_mix("h100=1", 2)
    stage.driver("h100", version=NEW)

    stage.until(lambda: stage.state("gpu-h100-001") == UpgradeState.POD_RESTART)
    stage.run(25)

    left = [key for key in labels(stage.node("gpu-h100-001")) if key.startswith("nvidia.com/gpu.product")]
    assert left == []
    assert status(stage.node("gpu-h100-001"))["allocatable"]["nvidia.com/gpu"] == "0"


def test_a_claimed_node_is_upgraded_and_its_slice_says_so():
    stage = a_mix("dra=1", 1)

    stage.driver("h100", version=NEW)
    stage.until(lambda: all_done(stage, NEW))
    stage.run(60)

    (held,) = stage.store.list(RESOURCE_SLICE)[0]
    assert spec(held)["devices"][0]["attributes"]["driverVersion"] == {"version": NEW}
    assert len([claim for claim in stage.store.list(RESOURCE_CLAIM)[0] if status(claim).get("reservedFor")]) == 7


def test_a_gpu_cluster_is_upgraded_by_its_nvidia_drivers():
    stage = a_mix("h100=1", 2, mode="gpu-cluster")

    stage.driver("h100", version=NEW)
    stage.until(lambda: all_done(stage, NEW))
    stage.run(60)

    assert stage.store.get(GPU_CLUSTER, "gpu-cluster")["status"]["state"] == "ready"
    versions = {spec(each)["devices"][0]["attributes"]["driverVersion"]["version"] for each in slices(stage)}
    assert versions == {NEW}


def slices(stage):
    return stage.store.list(RESOURCE_SLICE)[0]


def test_a_gpu_cluster_beside_a_cluster_policy_says_that_it_cannot_be():
    stage = a_mix("h100=1", 1, mode="gpu-cluster")

    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {}}
    stage.store.create(CLUSTER_POLICY, policy)
    stage.run(5)

    found = stage.store.get(GPU_CLUSTER, "gpu-cluster")["status"]
    assert found["state"] == "notReady"
    assert any("cannot coexist" in each["message"] for each in found["conditions"])


def test_another_sharing_is_offered_once_a_node_picks_it():
    stage = a_mix("h100=1", 1)

    stage.label("gpu-h100-001", **{"nvidia.com/device-plugin.config": "time-slicing-4"})
    stage.run(30)

    assert status(stage.node("gpu-h100-001"))["allocatable"]["nvidia.com/gpu"] == "32"
    assert labels(stage.node("gpu-h100-001"))["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-SHARED"
