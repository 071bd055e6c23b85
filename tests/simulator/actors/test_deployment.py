from simulator.actors.objects import is_true, name, status
from simulator.kinds import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET
from tests.simulator.actors.stage import a_fleet


def an_owner(app, image="busybox:1", **spec):
    template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, "template": template, **spec},
    }


def images(stage):
    return {pod["spec"]["containers"][0]["image"] for pod in stage.pods(namespace="default")}


def test_a_deployment_has_as_many_ready_pods_as_it_asks_for():
    stage = a_fleet(2)

    stage.store.create(DEPLOYMENT, an_owner("web", replicas=3), "default")
    stage.run(60)

    counted = status(stage.store.get(DEPLOYMENT, "web", "default"))
    assert (counted["replicas"], counted["readyReplicas"], counted["updatedReplicas"]) == (3, 3, 3)


def test_a_new_template_replaces_the_old_pods():
    stage = a_fleet(2)
    stage.store.create(DEPLOYMENT, an_owner("web", replicas=2), "default")
    stage.run(60)

    stage.store.patch(DEPLOYMENT, "web", an_owner("web", image="busybox:2"), "default", how="merge")
    stage.run(120)

    assert images(stage) == {"busybox:2"}
    assert sorted(each["spec"]["replicas"] for each in stage.store.list(REPLICA_SET, "default")[0]) == [0, 2]


def test_pods_go_with_their_deployment():
    stage = a_fleet(2)
    stage.store.create(DEPLOYMENT, an_owner("web", replicas=2), "default")
    stage.run(60)

    stage.store.delete(DEPLOYMENT, "web", "default")
    stage.run(60)

    assert stage.pods(namespace="default") == []


def test_the_operators_own_deployment_keeps_its_pod():
    stage = a_fleet(2)
    (before,) = stage.pods(selector="app=gpu-operator")

    stage.run(60)

    assert [name(pod) for pod in stage.pods(selector="app=gpu-operator")] == [name(before)]


def test_a_stateful_set_numbers_its_pods_one_after_the_other():
    stage = a_fleet(2)

    stage.store.create(STATEFUL_SET, an_owner("db", serviceName="db", replicas=3), "default")
    stage.run(5)
    first = [name(pod) for pod in stage.pods(namespace="default")]
    stage.run(120)

    assert first == ["db-0"]
    assert sorted(name(pod) for pod in stage.pods(namespace="default")) == ["db-0", "db-1", "db-2"]
    assert status(stage.store.get(STATEFUL_SET, "db", "default"))["readyReplicas"] == 3


def test_a_pod_of_a_stateful_set_comes_back_under_its_name():
    stage = a_fleet(2)
    stage.store.create(STATEFUL_SET, an_owner("db", serviceName="db", replicas=2), "default")
    stage.run(120)
    was = stage.store.get(POD, "db-1", "default")["metadata"]["uid"]

    stage.store.evict("db-1", "default")
    stage.run(60)

    now = stage.store.get(POD, "db-1", "default")
    assert now["metadata"]["uid"] != was
    assert is_true(now, "Ready")


def test_a_smaller_stateful_set_loses_its_last_pods():
    stage = a_fleet(2)
    stage.store.create(STATEFUL_SET, an_owner("db", serviceName="db", replicas=3), "default")
    stage.run(180)

    stage.store.patch(STATEFUL_SET, "db", {"spec": {"replicas": 1}}, "default", how="merge")
    stage.run(60)

    assert [name(pod) for pod in stage.pods(namespace="default")] == ["db-0"]
