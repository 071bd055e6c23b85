"""What a registry says no with, and what the pod shows of it."""

from typing import Any

import pytest

from simulator.faults import BadImage
from simulator.kinds import EVENT, POD, SECRET
from tests.simulator.actors.stage import Stage, a_fleet

IMAGE = "registry.example/private/driver:580.999.1-ubuntu22.04"


def run(stage: Stage, *, secrets: tuple[str, ...] = ()) -> None:
    container = {"name": "pull", "image": IMAGE, "imagePullPolicy": "Always", "command": ["/bin/true"]}
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "imagePullSecrets": [{"name": name} for name in secrets],
    }
    stage.store.create(POD, {"metadata": {"name": "pull"}, "spec": spec}, "default")


def state(stage: Stage) -> dict[str, Any]:
    (pod,) = stage.pods(namespace="default")
    statuses = pod.get("status", {}).get("containerStatuses") or [{}]
    return statuses[0].get("state", {})


def waits(stage: Stage) -> str:
    return state(stage).get("waiting", {}).get("reason", "")


def test_what_only_ends_ends_once_its_image_is_there():
    stage = a_fleet(1)

    run(stage)
    stage.until(lambda: "terminated" in state(stage), limit_s=30)

    assert state(stage)["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(("how", "words"), [("missing", "not found"), ("denied", "401"), ("away", "i/o timeout")])
def test_it_waits_with_what_the_registry_said(how: str, words: str):
    stage = a_fleet(1)
    stage.faults.put(BadImage("driver:580.999", how=how))  # type: ignore[arg-type]

    run(stage)
    stage.until(lambda: waits(stage) == "ErrImagePull", limit_s=30)
    stage.until(lambda: waits(stage) == "ImagePullBackOff", limit_s=30)

    assert words in state(stage)["waiting"]["message"]


def test_with_a_pull_secret_that_is_there_it_is_let_in():
    stage = a_fleet(1)
    stage.faults.put(BadImage("driver:580.999", how="denied"))  # type: ignore[arg-type]
    data = {".dockerconfigjson": "e30="}
    secret = {"metadata": {"name": "ngc"}, "type": "kubernetes.io/dockerconfigjson", "data": data}
    stage.store.create(SECRET, secret, "default")

    run(stage, secrets=("ngc",))

    stage.until(lambda: "terminated" in state(stage), limit_s=30)


def test_of_a_pull_secret_that_is_not_there_it_is_told():
    stage = a_fleet(1)
    stage.faults.put(BadImage("driver:580.999", how="denied"))  # type: ignore[arg-type]

    run(stage, secrets=("lost",))
    stage.until(lambda: waits(stage) == "ErrImagePull", limit_s=30)
    stage.run(2)

    reasons = {event["reason"] for event in stage.store.list(EVENT, "default")[0]}
    assert "FailedToRetrieveImagePullSecret" in reasons
