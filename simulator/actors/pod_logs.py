"""What `kubectl logs` shows: the pod's own story, as its status tells it, in the words of what runs in it."""

from simulator.actors.gpu_operator.template import DRIVER_CONTAINER, INIT_CONTAINER, version_of
from simulator.actors.objects import Obj, status

Line = tuple[str, str]  # when, what


def read_log(pod: Obj, container: str, previous: bool) -> list[str] | None:  # noqa: FBT001 - the shape of pod_ends.LogReader
    """None: no such container, or it has not run (before)."""
    report = _report(pod, container)
    if report is None:
        return None
    last = (report.get("lastState") or {}).get("terminated")
    if previous:
        return _written(_story(pod, container, {"terminated": last})) if last else None
    return _written(_story(pod, container, report.get("state") or {}))


def _report(pod: Obj, container: str) -> Obj | None:
    reports = [*(status(pod).get("containerStatuses") or ()), *(status(pod).get("initContainerStatuses") or ())]
    return next((report for report in reports if report["name"] == container), None)


def _story(pod: Obj, container: str, state: Obj) -> list[Line]:
    running, ended = state.get("running"), state.get("terminated")
    if running:
        return [(running["startedAt"], line) for line in _words(pod, container)]
    if not ended:
        return []
    begun = [(ended["startedAt"], line) for line in _words(pod, container)]
    return [*begun, (ended["finishedAt"], f"exited with code {ended['exitCode']}")]


def _words(pod: Obj, container: str) -> list[str]:
    if container == INIT_CONTAINER:
        return ["Shutting down all GPU clients on the current node", "Unloading NVIDIA driver kernel modules..."]
    if container == DRIVER_CONTAINER:
        version = version_of(pod["spec"])
        return [f"Installing NVIDIA driver version {version}", "Loading NVIDIA driver kernel modules..."]
    return [f"{container} started"]


def _written(story: list[Line]) -> list[str]:
    return [f"{at} {line}" for at, line in story]
