"""What kubectl's tables say of an object."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from simulator.wire.ages import human
from simulator.wire.columns.custom import look_up
from simulator.wire.columns.pod import ready, restarts, shown_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=121), "2m1s"),
        (timedelta(minutes=9), "9m"),
        (timedelta(minutes=10, seconds=30), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3, minutes=5), "3h5m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2, hours=1), "2d1h"),
        (timedelta(days=8), "8d"),
        (timedelta(days=800), "2y70d"),
        (timedelta(seconds=-5), "<invalid>"),
    ],
)
def test_ages_get_coarser(duration: timedelta, said: str) -> None:
    assert human(duration) == said


def a_status(**state: Any) -> dict[str, Any]:
    return {"name": "main", "ready": "running" in state, "restartCount": 0, "state": state}


def a_pod(*containers: dict[str, Any], init: list[dict[str, Any]] | None = None, **more: Any) -> dict[str, Any]:
    status = {"phase": "Running", "containerStatuses": list(containers), "initContainerStatuses": init or []}
    spec = {"containers": [{"name": "main"}], "initContainers": [{"name": "i"} for _ in init or []]}
    return {"metadata": more.pop("metadata", {}), "spec": spec, "status": {**status, **more}}


CRASHED = {"reason": "Error", "exitCode": 1, "finishedAt": "2025-12-31T23:55:00Z"}


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (a_pod(a_status(running={})), "Running"),
        (a_pod(a_status(waiting={"reason": "CrashLoopBackOff"})), "CrashLoopBackOff"),
        (a_pod(a_status(waiting={"reason": "ContainerCreating"}), phase="Pending"), "ContainerCreating"),
        (a_pod(a_status(terminated={"reason": "Completed", "exitCode": 0}), phase="Succeeded"), "Completed"),
        (a_pod(a_status(terminated={"exitCode": 137})), "ExitCode:137"),
        (a_pod(phase="Pending"), "Pending"),
        (a_pod(phase="Failed", reason="Evicted"), "Evicted"),
        (a_pod(a_status(running={}), metadata={"deletionTimestamp": "x"}), "Terminating"),
        (a_pod(init=[a_status(running={})]), "Init:0/1"),
        (a_pod(init=[a_status(terminated={"exitCode": 0}), a_status(waiting={})]), "Init:1/2"),
        (a_pod(init=[a_status(waiting={"reason": "CrashLoopBackOff"})]), "Init:CrashLoopBackOff"),
        (a_pod(init=[a_status(terminated=CRASHED)]), "Init:Error"),
        (a_pod(a_status(running={}), init=[a_status(terminated={"exitCode": 0})]), "Running"),
    ],
)
def test_the_status_of_a_pod_is_its_worst_container(pod: dict[str, Any], said: str) -> None:
    assert shown_status(pod, NOW) == said


def test_restarts_say_when_the_last_was() -> None:
    container = {**a_status(running={}), "restartCount": 3, "lastState": {"terminated": CRASHED}}

    assert restarts(a_pod(container), NOW) == "3 (5m ago)"
    assert ready(a_pod(container), NOW) == "1/1"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".status.state", "ready"),
        (r".metadata.labels.example\.com/pool", "a"),
        (".status.conditions[?(@.type=='Ready')].status", "True"),
        (".spec.items[1].name", "two"),
        (".spec.nothing.here", None),
    ],
)
def test_columns_of_custom_resources_read_a_json_path(path: str, found: str | None) -> None:
    widget = {
        "metadata": {"labels": {"example.com/pool": "a"}},
        "spec": {"items": [{"name": "one"}, {"name": "two"}]},
        "status": {"state": "ready", "conditions": [{"type": "Other"}, {"type": "Ready", "status": "True"}]},
    }

    assert look_up(widget, path) == found
