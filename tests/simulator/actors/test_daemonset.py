"""Pods on each eligible node, revisions that come back, and both update strategies."""

from simulator.actors.gpu_operator import keys
from simulator.actors.objects import labels, node_of
from simulator.actors.revisions import HASH_LABEL
from simulator.fleets.small import DRIVER_NOW
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from tests.simulator.actors.stage import NEW, Stage, a_fleet

FIRST = "gpu-h100-001"
LATE = "2099-01-01T00:00:00Z"
PLUGIN = "nvidia-device-plugin-daemonset"


def a_set(stage: Stage, name: str) -> dict:
    return stage.store.get(DAEMON_SET, name, keys.NAMESPACE)


def revisions(stage: Stage, owner: str) -> dict[str, int]:
    """Hash -> number."""
    listed, _, _ = stage.store.list(CONTROLLER_REVISION, keys.NAMESPACE)
    found = [each for each in listed if each["metadata"]["ownerReferences"][0]["name"] == owner]
    return {labels(each)[HASH_LABEL]: each["revision"] for each in found}


def driver_set(stage: Stage, owner: str = "h100") -> str:
    sets, _, _ = stage.store.list(DAEMON_SET, label_selector=f"{keys.COMPONENT}={keys.DRIVER_COMPONENT}")
    return next(each["metadata"]["name"] for each in sets if each["metadata"]["ownerReferences"][0]["name"] == owner)


def test_a_planted_set_is_left_as_it_is():
    stage = a_fleet()
    before = {pod["metadata"]["uid"] for pod in stage.pods(namespace=keys.NAMESPACE)}

    stage.run(60)

    assert {pod["metadata"]["uid"] for pod in stage.pods(namespace=keys.NAMESPACE)} == before


def test_a_node_that_joins_gets_its_pods_and_one_that_leaves_loses_them():
    stage = a_fleet()
    worker = "gpu-operator-node-feature-discovery-worker"

    node = {"metadata": {"name": "late", "labels": {}}, "status": stage.node("cpu-001")["status"]}
    stage.store.create(NODE, node)
    stage.run(10)
    joined = [pod for pod in stage.pods("late") if labels(pod)["app"] == worker]
    stage.store.delete(NODE, "late")
    stage.run(10)

    assert len(joined) == 1
    assert stage.pods("late") == []


def test_a_label_that_no_longer_matches_takes_the_pod_away_and_brings_it_back():
    stage = a_fleet()
    gate = "nvidia.com/gpu.deploy.dcgm-exporter"

    stage.label(FIRST, **{gate: "paused-for-driver-upgrade"})
    stage.run(10)
    paused = stage.pods(FIRST, "app=nvidia-dcgm-exporter")
    stage.label(FIRST, **{gate: "true"})
    stage.run(20)

    assert paused == []
    assert len(stage.pods(FIRST, "app=nvidia-dcgm-exporter")) == 1


def test_of_two_pods_on_a_node_the_older_stays():
    stage = a_fleet()
    (oldest,) = stage.pods(FIRST, "app=nvidia-dcgm-exporter")

    twin = {**oldest, "metadata": {**oldest["metadata"], "name": "twin"}}
    stage.store.seed(POD, {**twin, "metadata": {**twin["metadata"], "creationTimestamp": LATE}}, keys.NAMESPACE)
    stage.run(60)

    (left,) = stage.pods(FIRST, "app=nvidia-dcgm-exporter")
    assert left["metadata"]["uid"] == oldest["metadata"]["uid"]


def test_pods_run_on_cordoned_nodes():
    stage = a_fleet()
    stage.cordon(FIRST)

    stage.store.delete(*pod_key(stage, "app=nvidia-dcgm-exporter"))
    stage.run(20)

    (pod,) = stage.pods(FIRST, "app=nvidia-dcgm-exporter")
    assert pod["status"]["phase"] == "Running"


def pod_key(stage: Stage, selector: str) -> tuple:
    (pod,) = stage.pods(FIRST, selector)
    return POD, pod["metadata"]["name"], keys.NAMESPACE


def test_the_hash_of_a_revision_is_on_its_pods_and_in_its_name():
    stage = a_fleet()

    (hash_,) = revisions(stage, PLUGIN)

    stored = stage.store.get(CONTROLLER_REVISION, f"{PLUGIN}-{hash_}", keys.NAMESPACE)
    assert stored["data"]["spec"]["template"]["$patch"] == "replace"
    assert {labels(pod)[HASH_LABEL] for pod in stage.pods(selector=f"app={PLUGIN}")} == {hash_}


def test_a_template_that_comes_back_uses_its_old_revision_again_with_the_highest_number():
    stage = a_fleet()
    stage.skip(FIRST)
    called = driver_set(stage)
    (old,) = revisions(stage, called)

    stage.driver("h100", version=NEW)
    stage.run(5)
    moved = revisions(stage, called)
    stage.driver("h100", version=DRIVER_NOW)
    stage.run(5)

    (new,) = moved.keys() - {old}
    assert moved == {old: 1, new: 2}
    assert revisions(stage, called) == {old: 3, new: 2}


def test_on_delete_waits_for_somebody_to_delete():
    stage = a_fleet()
    stage.skip(FIRST)
    before = stage.driver_pod(FIRST)["metadata"]["uid"]

    stage.driver("h100", version=NEW)
    stage.run(60)

    counted = a_set(stage, driver_set(stage))["status"]
    assert stage.driver_pod(FIRST)["metadata"]["uid"] == before
    assert (counted["observedGeneration"], counted["updatedNumberScheduled"]) == (2, 0)
    assert counted["desiredNumberScheduled"] == counted["numberReady"] == 1


def test_a_rolling_update_keeps_within_max_unavailable():
    stage = a_fleet(6)
    old = {pod["metadata"]["uid"] for pod in stage.pods(selector=f"app={PLUGIN}")}
    away: list[int] = []
    count = lambda _was, _is: away.append(6 - a_set(stage, PLUGIN)["status"]["numberReady"])  # noqa: E731
    stage.play.world[DAEMON_SET].on_change(count)
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "plugin:v2"}]

    stage.store.patch(DAEMON_SET, PLUGIN, image, keys.NAMESPACE, how="json")
    stage.until(lambda: not old & {pod["metadata"]["uid"] for pod in stage.pods(selector=f"app={PLUGIN}")})
    stage.run(30)

    assert a_set(stage, PLUGIN)["status"]["updatedNumberScheduled"] == 6
    assert max(away) <= 1


def test_pods_are_pinned_by_affinity_and_bound_by_the_scheduler():
    stage = a_fleet()
    stage.store.delete(*pod_key(stage, f"app={PLUGIN}"))

    stage.run(10)

    (pod,) = stage.pods(FIRST, f"app={PLUGIN}")
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"][0]["matchFields"][0]["values"] == [FIRST] == [node_of(pod)]
