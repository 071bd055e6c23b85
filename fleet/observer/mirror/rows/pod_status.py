"""STATUS and RESTARTS of a pod as in `kubectl get pods`, and its last crash.

kubernetes/kubernetes: pkg/printers/internalversion/printers.go, printPod. The phase is Running during crash loops
and Pending during failed image pulls; only the containers show the cause.
"""

from collections.abc import Iterator
from datetime import datetime

from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted, fitted_instant
from kube.structs import PodSeen
from kube.structs.meta import find
from kube.structs.pod import ContainerState, ContainerStateTerminated, ContainerStatus

AT_MOST = 128
NOTHING = ContainerState()
GATED = "SchedulingGated"  # PodReasonSchedulingGated in k8s.io/api/core/v1/types.go
LOST = "NodeLost"  # NodeUnreachablePodReason in pkg/util/node/node.go
TERMINAL = frozenset({"Succeeded", "Failed"})


def status_of(seen: PodSeen) -> str:
    if seen.metadata.deletion_timestamp is not None and seen.status.reason == LOST:
        return "Unknown"
    if seen.metadata.deletion_timestamp is not None and seen.status.phase not in TERMINAL:
        return "Terminating"
    return fitted(_status_of_containers(seen), AT_MOST)


def restarts_of(seen: PodSeen) -> int:
    """Counts restarts of init containers while they work; later of sidecars and main containers."""
    if not any(status.restart_count for status in seen.status.of_all_containers):
        return 0  # most pods
    sidecars, begun = _sidecars(seen), []
    for status in seen.status.init_container_statuses or ():
        begun.append(status)
        if not _has_passed(status, sidecars):
            break
    if _is_initialized(seen, _init_status(seen)):
        begun = [status for status in begun if status.name in sidecars]
        begun += seen.status.container_statuses or ()
    return min(sum(max(0, status.restart_count) for status in begun), INTEGER_MOST)


def crashed_at(seen: PodSeen) -> datetime | None:
    """Returns when a container last failed. None: never, or not reported."""
    ends = [fitted_instant(ended.finished_at) for _, ended in failed_ends(seen)]
    return max((end for end in ends if end is not None), default=None)


def failed_ends(seen: PodSeen) -> Iterator[tuple[str, ContainerStateTerminated]]:
    """Yields the failed ends that are reported, with the names of their containers."""
    for status in seen.status.of_all_containers:
        for state in (status.state, status.last_state):
            if state is not None and state.terminated is not None and state.terminated.exit_code != 0:
                yield status.name, state.terminated


def _status_of_containers(seen: PodSeen) -> str:
    init_status = _init_status(seen)
    reason = init_status or _status_of_pod(seen)
    return _status_when_running(seen, reason) if _is_initialized(seen, init_status) else reason


def _status_of_pod(seen: PodSeen) -> str:
    scheduled = seen.scheduled
    if scheduled is not None and scheduled.reason == GATED:
        return GATED
    return seen.status.reason or seen.status.phase


def _is_initialized(seen: PodSeen, init_status: str) -> bool:
    condition = find(seen.status.conditions, "Initialized") if init_status else None
    return not init_status or (condition is not None and condition.status == "True")


def _init_status(seen: PodSeen) -> str:
    """Returns `Init:1/3` or `Init:CrashLoopBackOff`. Blank: all init containers are done."""
    sidecars = _sidecars(seen)
    for index, status in enumerate(seen.status.init_container_statuses or ()):
        if _has_passed(status, sidecars):
            continue
        state = status.state or NOTHING
        if state.terminated is not None:
            return f"Init:{_exit_text(state.terminated)}"
        if state.waiting is not None and state.waiting.reason and state.waiting.reason != "PodInitializing":
            return f"Init:{state.waiting.reason}"
        return f"Init:{index}/{len(seen.spec.init_containers or ())}"
    return ""


def _sidecars(seen: PodSeen) -> set[str]:
    return {each.name for each in seen.spec.init_containers or () if each.restart_policy == "Always"}


def _has_passed(status: ContainerStatus, sidecars: set[str]) -> bool:
    state = status.state or NOTHING
    if state.terminated is not None and state.terminated.exit_code == 0:
        return True
    return status.name in sidecars and bool(status.started)


def _status_when_running(seen: PodSeen, reason: str) -> str:
    """Returns the status of the first container that waits or ended."""
    has_running = False
    for status in reversed(seen.status.container_statuses or ()):
        state = status.state or NOTHING
        if state.waiting is not None and state.waiting.reason:
            reason = state.waiting.reason
        elif state.terminated is not None:
            reason = _exit_text(state.terminated)
        elif status.ready and state.running is not None:
            has_running = True
    if reason == "Completed" and has_running:
        is_ready = seen.ready is not None and seen.ready.status == "True"
        return "Running" if is_ready else "NotReady"
    return reason


def _exit_text(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}"
