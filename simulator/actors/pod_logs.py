"""What `kubectl logs` shows: the pod's own story, as its status tells it, in the words of what runs in it."""

from collections.abc import Iterable

from simulator.actors.diag_report import diag_lines, runs_diag
from simulator.actors.gpu_operator.template import DRIVER_CONTAINER, INIT_CONTAINER, version_of
from simulator.actors.journal import Journal
from simulator.actors.objects import Obj, status, uid

Line = tuple[str, str]  # when, what


class PodLogs:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def read(self, pod: Obj, container: str, previous: bool) -> list[str] | None:  # noqa: FBT001 - pod_ends.LogReader
        """None: no such container, or it has not run (before)."""
        report = _report(pod, container)
        if report is None:
            return None
        last, state = (report.get("lastState") or {}).get("terminated"), report.get("state") or {}
        if previous:
            return _written(self._ended(pod, container, last)) if last else None
        if "waiting" in state and last:  # until it runs again, the run that ended is the one to read
            return _written(self._ended(pod, container, last))
        return _written(self._story(pod, container, state))

    def _story(self, pod: Obj, container: str, state: Obj) -> list[Line]:
        running, ended = state.get("running"), state.get("terminated")
        if running:
            return [(running["startedAt"], line) for line in _words(pod, container)]
        return self._ended(pod, container, ended) if ended else []

    def _ended(self, pod: Obj, container: str, ended: Obj) -> list[Line]:
        said = self._journal.last_run(uid(pod), container)
        if said:
            return [(ended["finishedAt"], line) for line in said]
        if ended["exitCode"] == 0 and runs_diag(pod, container):
            return [(ended["finishedAt"], line) for line in diag_lines(pod, container)]
        begun = [(ended["startedAt"], line) for line in _words(pod, container)]
        return [*begun, (ended["finishedAt"], f"exited with code {ended['exitCode']}")]


def _report(pod: Obj, container: str) -> Obj | None:
    reports = [*(status(pod).get("containerStatuses") or ()), *(status(pod).get("initContainerStatuses") or ())]
    return next((report for report in reports if report["name"] == container), None)


def _words(pod: Obj, container: str) -> list[str]:
    if container == INIT_CONTAINER:
        return ["Shutting down all GPU clients on the current node", "Unloading NVIDIA driver kernel modules..."]
    if container == DRIVER_CONTAINER:
        version = version_of(pod["spec"])
        return [f"Installing NVIDIA driver version {version}", "Loading NVIDIA driver kernel modules..."]
    return [f"{container} started"]


def _written(story: Iterable[Line]) -> list[str]:
    return [f"{at} {line}" for at, line in story]
