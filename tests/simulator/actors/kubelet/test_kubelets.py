"""A pod's way through its node."""

from simulator.actors.objects import condition, is_true
from simulator.kinds import LEASE, NODE, POD
from tests.simulator.actors.stage import Stage, a_fleet

GPU_NODE = "gpu-h100-001"


def a_pod(stage: Stage, *, node: str = "cpu-001", **spec) -> dict:
    container = {"name": "main", "image": "busybox:1.37", **spec.pop("container", {})}
    wanted = {"metadata": {"name": "p"}, "spec": {"nodeName": node, "containers": [container], **spec}}
    return stage.store.create(POD, wanted, "default")


def the_pod(stage: Stage) -> dict:
    return stage.store.get(POD, "p", "default")


def phases(stage: Stage) -> list[tuple]:
    """(phase, ready) of the pod as it changed."""
    seen: list[tuple] = []

    def note(_was, now):
        if now and now["metadata"]["name"] == "p":
            here = (now["status"]["phase"], is_true(now, "Ready"))
            if seen[-1:] != [here]:
                seen.append(here)

    stage.play.world[POD].on_change(note)
    return seen


def test_waits_runs_and_becomes_ready():
    stage = a_fleet(1)
    seen = phases(stage)

    a_pod(stage, initContainers=[{"name": "first", "image": "busybox:1.37"}])
    stage.run(30)

    assert seen == [("Pending", False), ("Running", False), ("Running", True)]
    status = the_pod(stage)["status"]
    assert status["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"
    assert status["containerStatuses"][0]["ready"] is True
    assert status["podIP"] != status["hostIP"]


def test_a_deleted_pod_ends_after_its_containers_have():
    stage = a_fleet(1)
    a_pod(stage)
    stage.run(30)

    stage.store.delete(POD, "p", "default")
    stage.run(1)
    is_ending = "deletionTimestamp" in the_pod(stage)["metadata"]
    stage.run(30)

    assert is_ending
    assert stage.pods(namespace="default") == []


def test_ends_at_once_where_it_has_no_grace():
    stage = a_fleet(1)
    a_pod(stage, terminationGracePeriodSeconds=1)
    stage.run(30)

    stage.store.delete(POD, "p", "default")
    stage.run(1.5)

    assert stage.pods(namespace="default") == []


def test_refuses_a_pod_for_which_no_gpu_is_left():
    stage = a_fleet(1)

    a_pod(stage, node=GPU_NODE, container={"resources": {"limits": {"nvidia.com/gpu": "1"}}})
    stage.run(5)

    status = the_pod(stage)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert "Requested: 1, Available: 0" in status["message"]


def test_actors_that_come_later_go_on_where_others_left_off():
    stage = a_fleet(2)
    a_pod(stage)
    stage.settle()

    later = Stage.joining(stage)
    later.run(30)

    assert is_true(the_pod(later), "Ready")
    assert later.play.kubelets.hosts[GPU_NODE].driver == "580.95.05"


def test_a_cordon_shows_as_a_taint_and_goes_with_it():
    stage = a_fleet(1)

    stage.cordon(GPU_NODE)
    stage.settle()
    tainted = stage.node(GPU_NODE)["spec"].get("taints")
    stage.store.patch(NODE, GPU_NODE, {"spec": {"unschedulable": None}}, how="merge")
    stage.settle()

    assert [taint["key"] for taint in tainted] == ["node.kubernetes.io/unschedulable"]
    assert "taints" not in stage.node(GPU_NODE)["spec"]


def test_heartbeats_renew_leases_and_conditions():
    stage = a_fleet(2)
    stage.play.heartbeats.start()
    before = condition(stage.node(GPU_NODE), "Ready")

    stage.run(310)

    leases = {lease["metadata"]["name"] for lease in stage.store.list(LEASE, "kube-node-lease")[0]}
    after = condition(stage.node(GPU_NODE), "Ready")
    assert leases == {node["metadata"]["name"] for node in stage.store.list(NODE)[0]}
    assert after["lastHeartbeatTime"] > before["lastHeartbeatTime"]
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
