"""A namespace that has used up its quota: who is refused, and where that is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.actors.objects import condition, name, status
from simulator.kinds import DAEMON_SET, EVENT, JOB, POD, REPLICA_SET, RESOURCE_QUOTA
from simulator.quotas import written
from simulator.refusals import Refused
from tests.simulator.actors.stage import a_mix

GPUS = "requests.nvidia.com/gpu"


def a_limited_stage(gpus=3, **hard):
    stage = a_mix("h100=1", 1, workloads=())
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {GPUS: str(gpus), **hard}}}
    stage.store.create(RESOURCE_QUOTA, quota, "default")
    stage.run(5)
    return stage


def a_template(app="train", gpus=1):
    asked = {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "500m", "memory": "1Gi"}}
    container = {"name": "main", "image": "cuda", "resources": asked}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}


def an_owner(app="train", gpus=1, **spec):
    return {
        "metadata": {"name": app},
        "spec": {"selector": {"matchLabels": {"app": app}}, "template": a_template(app, gpus), **spec},
    }


def told(stage, reason):
    return [each for each in stage.store.list(EVENT, "default")[0] if each["reason"] == reason]


def the_quota(stage):
    return status(stage.store.get(RESOURCE_QUOTA, "gpus", "default"))


def test_a_pod_too_many_is_refused_in_the_words_of_the_quota():
    stage = a_limited_stage(gpus=2)

    with pytest.raises(Refused) as refusal:
        stage.store.create(POD, {"metadata": {"name": "big"}, "spec": a_template(gpus=4)["spec"]}, "default")

    assert refusal.value.status == 403
    assert refusal.value.message == (
        f'pods "big" is forbidden: exceeded quota: gpus, requested: {GPUS}=4, used: {GPUS}=0, limited: {GPUS}=2'
    )


def test_a_replica_set_says_what_it_may_not_have():
    stage = a_limited_stage(gpus=3)

    stage.store.create(REPLICA_SET, an_owner(replicas=5), "default")
    stage.run(60)

    found = stage.store.get(REPLICA_SET, "train", "default")
    assert status(found)["replicas"] == 3
    assert condition(found, "ReplicaFailure")["reason"] == "FailedCreate"
    assert "exceeded quota: gpus" in told(stage, "FailedCreate")[0]["message"]
    assert the_quota(stage) == {"hard": {GPUS: "3"}, "used": {GPUS: "3"}}


def test_what_was_refused_is_made_once_there_is_room():
    stage = a_limited_stage(gpus=1)
    stage.store.create(REPLICA_SET, an_owner(replicas=2), "default")
    stage.run(20)

    stage.store.patch(RESOURCE_QUOTA, "gpus", {"spec": {"hard": {GPUS: "8"}}}, "default", how="merge")
    stage.run(60)

    found = stage.store.get(REPLICA_SET, "train", "default")
    assert status(found)["readyReplicas"] == 2
    assert not condition(found, "ReplicaFailure")


def test_a_job_and_a_daemon_set_tell_it_too():
    stage = a_limited_stage(gpus=0)

    job = {"metadata": {"name": "once"}, "spec": {"template": a_template()}}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    stage.store.create(JOB, job, "default")
    stage.store.create(DAEMON_SET, an_owner("everywhere"), "default")
    stage.run(10)

    assert {each["involvedObject"]["kind"] for each in told(stage, "FailedCreate")} == {"Job", "DaemonSet"}


def test_a_refusal_is_asked_again_ever_more_rarely():
    stage = a_limited_stage(gpus=0)

    stage.store.create(REPLICA_SET, an_owner(replicas=1), "default")
    stage.run(1000)

    assert sum(each["count"] for each in told(stage, "FailedCreate")) <= 13


def test_a_pod_that_ended_counts_for_nothing():
    stage = a_limited_stage(gpus=1)
    job = {"metadata": {"name": "once"}, "spec": {"template": a_template()}}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"

    stage.store.create(JOB, job, "default")
    stage.run(120)

    assert the_quota(stage)["used"] == {GPUS: "0"}
    assert [name(pod) for pod in stage.pods(namespace="default")]


def test_events_are_gone_an_hour_after_they_were_last_told():
    stage = a_limited_stage(gpus=8)
    stage.store.create(REPLICA_SET, an_owner(replicas=1), "default")
    stage.run(60)
    before = len(told(stage, "Started"))

    stage.run(3700)

    assert before == 1
    assert stage.store.list(EVENT, "default")[0] == []


def test_a_pod_leaves_the_trail_of_events_that_kubelets_leave():
    stage = a_limited_stage(gpus=8)

    stage.store.create(REPLICA_SET, an_owner(replicas=1), "default")
    stage.run(60)

    (pod,) = stage.pods(namespace="default")
    trail = [
        each["reason"] for each in stage.store.list(EVENT, "default")[0] if each["involvedObject"]["name"] == name(pod)
    ]
    assert sorted(trail) == ["Created", "Pulled", "Pulling", "Scheduled", "Started"]


@pytest.mark.parametrize("quantity", ["many", "-1", "", "1Q"])
def test_a_limit_that_is_no_quantity_is_refused(quantity):
    with pytest.raises(Refused) as refusal:
        a_limited_stage(gpus=quantity)

    assert refusal.value.status == 422


@given(st.integers(0, 10**6))
def test_cpu_is_written_in_whole_cores_where_it_can(milli):
    text = written("requests.cpu", milli)

    assert (int(text[:-1]) if text.endswith("m") else int(text) * 1000) == milli
