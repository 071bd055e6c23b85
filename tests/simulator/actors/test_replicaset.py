from simulator.kinds import POD, REPLICA_SET
from tests.simulator.actors.stage import a_fleet

QUEUE = ("sweep", "batch")


def queue(stage) -> list[dict]:
    return stage.pods(selector="app.kubernetes.io/name=sweep")


def test_a_pod_that_goes_is_replaced():
    stage = a_fleet(2)
    gone = queue(stage)[0]

    stage.store.delete(POD, gone["metadata"]["name"], "batch")
    stage.run(15)

    assert len(queue(stage)) == stage.store.get(REPLICA_SET, *QUEUE)["spec"]["replicas"]
    assert gone["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in queue(stage)}


def test_scaling_down_takes_waiting_pods_first():
    stage = a_fleet(4)
    running = {pod["metadata"]["uid"] for pod in queue(stage) if pod["spec"].get("nodeName")}

    stage.store.patch(REPLICA_SET, QUEUE[0], {"spec": {"replicas": len(running)}}, QUEUE[1], how="merge")
    stage.run(15)

    assert {pod["metadata"]["uid"] for pod in queue(stage)} == running


def test_the_status_counts_what_is_ready():
    stage = a_fleet(4)

    stage.store.patch(REPLICA_SET, QUEUE[0], {"spec": {"replicas": 2}}, QUEUE[1], how="merge")
    stage.run(30)

    counted = stage.store.get(REPLICA_SET, *QUEUE)["status"]
    assert (counted["replicas"], counted["readyReplicas"], counted["observedGeneration"]) == (2, 2, 2)
