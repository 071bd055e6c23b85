"""The script against the simulator it is for: the first minutes of the demo, played fast."""

import json
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

from demo.script import A_MINUTE_S, NoAnswerError, Script
from demo.visitor import wait_until
from tests.demo.terminal import ROOT
from tests.patience import PATIENCE_S


@pytest.fixture
def url() -> Iterator[str]:
    command = [sys.executable, "-m", "simulator", "--nodes", "4", "--speed", "1000", "--die-with-parent"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        yield json.loads(running.stdout.readline())["url"]
        running.terminate()


def get(address: str):
    return httpx.get(address).raise_for_status().json()


def faults(url: str) -> set[str]:
    return {fault["key"] for fault in get(f"{url}/simulator/faults")}


def pods(url: str, name: str) -> list[dict]:
    path = f"{url}/api/v1/pods?labelSelector=app.kubernetes.io/name={name}"
    return get(path)["items"]


def why(url: str, name: str) -> str:
    conditions = [each for pod in pods(url, name) for each in pod["status"].get("conditions") or []]
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def is_rejected(url: str) -> bool:
    owner = get(f"{url}/apis/apps/v1/namespaces/students/replicasets/homework")
    return any("exceeded quota" in each["message"] for each in owner["status"].get("conditions") or [])


def test_the_first_minutes_show_heat_an_xid_and_pods_that_wait_each_for_another_reason(url: str):
    said: list[str] = []
    script = Script(url, 1, say=said.append)

    for minute in range(4):
        script.play(minute * A_MINUTE_S)

    assert faults(url) == {"hot_gpu", "fallen_gpu"}
    assert [line.partition(":")[0] for line in said] == ["Minute 1", "Minute 2", "Minute 3"]
    wait_until(lambda: "Insufficient nvidia.com/gpu" in why(url, "world-model"), what="no room", timeout_s=PATIENCE_S)
    wait_until(lambda: "affinity/selector" in why(url, "simulation"), what="no such node", timeout_s=PATIENCE_S)
    wait_until(lambda: is_rejected(url), what="a quota that is used up", timeout_s=PATIENCE_S)
    idle = wait_until(lambda: pods(url, "left-open"), what="an idle holder", timeout_s=PATIENCE_S)
    wait_until(lambda: pods(url, "left-open")[0]["spec"].get("nodeName"), what="its node", timeout_s=PATIENCE_S)
    assert idle[0]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert pods(url, "evaluation")

    for minute in (8, 12, 25):
        script.play(minute * A_MINUTE_S)

    assert faults(url) == set()
    wait_until(lambda: not pods(url, "evaluation"), what="the end of the evaluation", timeout_s=PATIENCE_S)
    assert pods(url, "left-open")


def test_a_demo_that_starts_again_takes_over_what_is_there_and_ends_what_is_not_due(url: str):
    said: list[str] = []
    Script(url, 1, say=said.append).play(0)
    earlier = Script(url, 1, say=said.append)
    for minute in range(4):
        earlier.play(minute * A_MINUTE_S)
    before = wait_until(lambda: pods(url, "left-open"), what="an idle holder", timeout_s=PATIENCE_S)
    said.clear()

    Script(url, 1, say=said.append).play(100 * A_MINUTE_S)

    assert faults(url) == set()
    assert said == []
    assert [pod["metadata"]["uid"] for pod in pods(url, "left-open")] == [pod["metadata"]["uid"] for pod in before]
    wait_until(lambda: not pods(url, "evaluation"), what="the end of what was not due", timeout_s=PATIENCE_S)


def test_what_the_cluster_refuses_is_told_and_the_rest_goes_on(url: str):
    said: list[str] = []
    script = Script(url, 1, say=said.append)
    script.play(0)
    httpx.delete(f"{url}/api/v1/namespaces/robotics").raise_for_status()

    script.play(2 * A_MINUTE_S)
    script.play(3 * A_MINUTE_S)

    assert "The cluster refused POST /apis/apps/v1/namespaces/robotics/replicasets: 404 Not Found." in said
    assert faults(url) == {"hot_gpu", "fallen_gpu"}


def test_a_cluster_that_is_away_costs_one_look():
    script = Script("http://127.0.0.1:9", 1, say=print)

    with pytest.raises(NoAnswerError):
        script.play(0)
