from datetime import datetime
from typing import Any

from simulator.wire.ages import age
from simulator.wire.columns.column import AGE, NAME, Column, reading

Obj = dict[str, Any]


def _statuses(pod: Obj) -> list[Obj]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def ready(pod: Obj, _now: datetime) -> str:
    return f"{sum(bool(status.get('ready')) for status in _statuses(pod))}/{len(pod['spec']['containers'])}"


def restarts(pod: Obj, now: datetime) -> str:
    count = sum(status.get("restartCount", 0) for status in _statuses(pod))
    ended = [
        terminated["finishedAt"]
        for status in _statuses(pod)
        if (terminated := (status.get("lastState") or {}).get("terminated")) and terminated.get("finishedAt")
    ]
    return f"{count} ({age(max(ended), now)} ago)" if count and ended else str(count)


def shown_status(pod: Obj, _now: datetime) -> str:
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    initial = _init_reason(pod)
    if not initial:
        reason = _container_reason(pod, reason)
    if "deletionTimestamp" in pod["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return initial or reason


def _init_reason(pod: Obj) -> str:
    """What holds the first init container that is not done; empty when none does."""
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or []
    for index, status in enumerate(statuses):
        state = status.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated and terminated.get("exitCode") == 0:
            continue
        if terminated:
            return "Init:" + (terminated.get("reason") or f"ExitCode:{terminated.get('exitCode')}")
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(pod['spec'].get('initContainers', ()))}"
    return ""


def _container_reason(pod: Obj, reason: str) -> str:
    has_running = False
    for status in reversed(_statuses(pod)):
        state = status.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated:
            reason = terminated.get("reason") or f"ExitCode:{terminated.get('exitCode')}"
        elif status.get("ready") and state.get("running") is not None:
            has_running = True
    return "Running" if reason == "Completed" and has_running else reason


POD_COLUMNS = (
    NAME,
    Column("Ready", ready, description="The aggregate readiness state of this pod for accepting traffic."),
    Column("Status", shown_status, description="The aggregate status of the containers in this pod."),
    Column("Restarts", restarts, description="The number of times the containers in this pod have been restarted."),
    AGE,
    Column("IP", reading("status.podIP", "<none>"), priority=1),
    Column("Node", reading("spec.nodeName", "<none>"), priority=1),
    Column("Nominated Node", reading("status.nominatedNodeName", "<none>"), priority=1),
    Column("Readiness Gates", lambda _obj, _now: "<none>", priority=1),
)
