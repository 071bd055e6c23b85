from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, REPLICA_SET
from tests.simulator.actors.stage import a_fleet


def test_pods_go_with_their_owner():
    stage = a_fleet(2)

    stage.store.delete(REPLICA_SET, "sweep", "batch")
    stage.run(20)

    assert stage.pods(namespace="batch") == []


def test_a_driver_takes_its_sets_revisions_and_pods_with_it():
    stage = a_fleet(2)

    stage.store.delete(NVIDIA_DRIVER, "h100")
    stage.run(20)

    selector = f"{keys.COMPONENT}={keys.DRIVER_COMPONENT}"
    assert len(stage.store.list(DAEMON_SET, label_selector=selector)[0]) == 1
    assert len(stage.store.list(CONTROLLER_REVISION, label_selector=selector)[0]) == 1
    assert len(stage.pods(selector=selector)) == 1


def test_pods_of_a_deleted_node_are_confirmed_by_nobody_and_go():
    stage = a_fleet(2)

    stage.store.delete(NODE, "gpu-h100-001")
    stage.run(20)

    assert stage.pods("gpu-h100-001") == []
