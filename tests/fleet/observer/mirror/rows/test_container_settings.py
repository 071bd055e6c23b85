"""What is unusual about the containers of a GPU pod, as its checklist needs it."""

import msgspec
import pytest

from fleet.observer.mirror.rows.environment import NO_LIST
from fleet.observer.mirror.rows.pod import pod_row
from kube.structs import PodSeen
from tests.fleet.documents import pod_document

GPU = {"limits": {"nvidia.com/gpu": "1", "memory": "2Gi"}}


def settings_of(**given):
    return pod_row(msgspec.json.decode(msgspec.json.encode(pod_document(**given)), type=PodSeen))["container_settings"]


def a_container(name: str = "main", env=(), **given):
    return {"name": name, "resources": GPU, "env": list(env), **given}


def test_a_usual_pod_stores_nothing():
    assert settings_of() == {}
    assert settings_of(containers=[a_container(securityContext={"runAsUser": 1000})]) == {}


def test_a_container_beside_one_with_gpus_is_named():
    containers = [a_container(), {"name": "proxy"}]

    assert settings_of(containers=containers) == {"without_gpus": ["proxy"]}


def test_an_init_container_beside_one_with_gpus_is_named():
    init = [{"name": "download"}, a_container("warm-up")]

    assert settings_of(containers=[a_container()], init_containers=init) == {"without_gpus": ["download"]}


def test_a_privileged_container_is_named():
    assert settings_of(containers=[a_container(securityContext={"privileged": True})]) == {"privileged": ["main"]}
    assert settings_of(containers=[a_container(securityContext="odd")]) == {}


def test_device_lists_are_stored_and_no_other_value():
    reference = {"fieldRef": {"fieldPath": "metadata.name"}}
    env = [
        {"name": "CUDA_VISIBLE_DEVICES", "value": "0,GPU-8932f937"},
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "hunter2"},
        {"name": "API_TOKEN", "value": "hunter2"},
    ]
    other = a_container("side", [{"name": "CUDA_VISIBLE_DEVICES", "valueFrom": reference}])

    assert settings_of(containers=[a_container(env=env), other])["visible"] == [
        {"container": "main", "variable": "CUDA_VISIBLE_DEVICES", "devices": "0,GPU-8932f937"},
        {"container": "main", "variable": "NVIDIA_VISIBLE_DEVICES", "devices": NO_LIST},
        {"container": "side", "variable": "CUDA_VISIBLE_DEVICES", "devices": None},
    ]
    assert (
        pod_row(msgspec.convert(pod_document(containers=[a_container(env=env)]), PodSeen, strict=False))[
            "visible_devices"
        ]
        == NO_LIST
    )


def test_the_last_failed_end_is_kept_while_the_container_runs_again():
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-21T09:00:00Z", "message": "token=abc1234"}
    statuses = [{"name": "main", "ready": True, "restartCount": 1, "lastState": {"terminated": ended}}]

    assert settings_of(containers=[a_container()], statuses=statuses)["ended"] == {
        "container": "main",
        "reason": "OOMKilled",
        "exit_code": 137,
        "at": "2026-11-21T09:00:00+00:00",
        "memory_limit_bytes": 2**31,
        "words": "token=[redacted]",
    }


@pytest.mark.parametrize(
    ("limits", "of_pod", "is_marked"),
    [
        ({}, None, True),
        ({"memory": "2Gi"}, None, None),
        ({"memory": "odd"}, None, None),
        ({}, {"limits": {"memory": "2Gi"}}, None),
    ],
)
def test_an_end_without_a_memory_limit_is_marked(limits, of_pod, is_marked):
    ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-21T09:00:00Z"}
    statuses = [{"name": "main", "lastState": {"terminated": ended}}]
    containers = [a_container(resources={"limits": {"nvidia.com/gpu": "1", **limits}})]

    kept = settings_of(containers=containers, statuses=statuses, of_pod=of_pod)["ended"]

    assert kept.get("has_no_memory_limit") is is_marked


@pytest.mark.parametrize(
    ("phase", "exit_code", "kept"), [("Failed", 0, True), ("Failed", 1, None), ("Running", 0, None)]
)
def test_a_failed_pod_whose_containers_all_ended_well_is_marked(phase, exit_code, kept):
    ended = {"terminated": {"exitCode": exit_code, "reason": "Completed"}}
    statuses = [{"name": "main", "state": ended}]

    assert settings_of(containers=[a_container()], statuses=statuses, phase=phase).get("had_ended_well") is kept


def test_a_pod_without_gpus_stores_nothing():
    containers = [{"name": "main", "securityContext": {"privileged": True}}]

    assert settings_of(containers=containers, labels={}) == {}
