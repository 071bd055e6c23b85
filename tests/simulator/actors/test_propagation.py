from simulator.kinds import POD, REPLICA_SET
from tests.simulator.actors.stage import a_fleet


def test_in_the_foreground_the_owner_goes_last():
    stage = a_fleet(2)
    pods = {pod["metadata"]["name"] for pod in stage.pods(namespace="batch")}

    held = stage.store.delete(REPLICA_SET, "sweep", "batch", propagation="Foreground")
    stage.settle()
    waiting = stage.store.get(REPLICA_SET, "sweep", "batch")
    stage.run(60)

    assert pods
    assert held["metadata"]["finalizers"] == waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert stage.pods(namespace="batch") == []
    assert [each["metadata"]["name"] for each in stage.store.list(REPLICA_SET, "batch")[0]] == []


def test_orphans_stay_and_have_no_owner():
    stage = a_fleet(2)
    before = {pod["metadata"]["name"] for pod in stage.pods(namespace="batch")}

    stage.store.delete(REPLICA_SET, "sweep", "batch", propagation="Orphan")
    stage.run(20)

    left = stage.store.list(POD, "batch")[0]
    assert {pod["metadata"]["name"] for pod in left} == before
    assert not any("ownerReferences" in pod["metadata"] for pod in left)
    assert stage.store.list(REPLICA_SET, "batch")[0] == []
