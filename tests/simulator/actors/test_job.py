from simulator.actors.objects import is_true
from simulator.kinds import JOB
from tests.simulator.actors.stage import Stage, a_fleet


def a_job(stage: Stage, **spec) -> None:
    container = {"name": "main", "image": "busybox:1.37"}
    template = {"metadata": {"labels": {"app": "job"}}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    stage.store.create(JOB, {"metadata": {"name": "once"}, "spec": {"template": template, **spec}}, "default")


def the_job(stage: Stage) -> dict:
    return stage.store.get(JOB, "once", "default")


def test_runs_to_its_end():
    stage = a_fleet(1)

    a_job(stage)
    stage.until(lambda: is_true(the_job(stage), "Complete"), limit_s=200)

    assert the_job(stage)["status"]["succeeded"] == 1
    assert [pod["status"]["phase"] for pod in stage.pods(namespace="default")] == ["Succeeded"]


def test_runs_no_more_pods_at_once_than_its_parallelism():
    stage = a_fleet(1)

    a_job(stage, completions=3, parallelism=2)
    stage.run(20)

    assert len(stage.pods(namespace="default")) == 2
    stage.until(lambda: is_true(the_job(stage), "Complete"), limit_s=300)
    assert len(stage.pods(namespace="default")) == 3


def test_does_nothing_while_suspended():
    stage = a_fleet(1)

    a_job(stage, suspend=True)
    stage.run(60)

    assert stage.pods(namespace="default") == []


def test_what_is_over_its_deadline_fails_and_loses_its_pods():
    stage = a_fleet(1)

    a_job(stage, activeDeadlineSeconds=30)
    stage.until(lambda: is_true(the_job(stage), "Failed"), limit_s=60)
    stage.run(60)

    (failed,) = [one for one in the_job(stage)["status"]["conditions"] if one["type"] == "Failed"]
    assert failed["reason"] == "DeadlineExceeded"
    assert stage.pods(namespace="default") == []


def test_what_has_ended_goes_when_its_time_is_over():
    stage = a_fleet(1)

    a_job(stage, ttlSecondsAfterFinished=100)
    stage.until(lambda: is_true(the_job(stage), "Complete"), limit_s=200)
    stage.run(50)
    assert the_job(stage)
    stage.run(100)

    listed, _, _ = stage.store.list(JOB, "default")
    assert listed == []
    assert stage.pods(namespace="default") == []
