"""The state of a pod, for pages, REST and rules. Pure.

`status` is kubectl's word; this is its meaning. The first true condition counts.
"""

from datetime import datetime, timedelta
from enum import StrEnum

# After this time without a crash the back-off starts anew (kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle,
# “Container restart policy”). A crashing container runs, and may be ready, between two back-offs.
CALM_AFTER = timedelta(minutes=10)
OFTEN = 3  # restarts; fewer may be accidental

ENDED = frozenset({"Succeeded", "Failed"})  # phases of a finished pod, which holds no resource


class PodState(StrEnum):
    UNKNOWN = "unknown"  # its node's kubelet is silent; the last report is shown
    TERMINATING = "terminating"
    DONE = "done"
    FAILED = "failed"  # failed and not restarted
    FAILING = "failing"  # a container crashes or cannot start
    READY = "ready"
    NOT_READY = "not-ready"  # running but not usable
    STARTING = "starting"  # waits for a node, an image or init containers


def pod_state(
    *,
    phase: str,
    is_ready: bool,
    is_leaving: bool,
    is_stuck: bool,
    restarts: int,
    crashed_at: datetime | None,
    is_node_silent: bool,
    now: datetime,
) -> PodState:
    """Returns the state. `is_stuck`: a container waits abnormally or crashed."""
    if phase == "Succeeded":
        return PodState.DONE
    if phase == "Failed":
        return PodState.FAILED
    if is_node_silent or phase == "Unknown":
        return PodState.UNKNOWN
    if is_leaving:
        return PodState.TERMINATING
    if is_stuck or (restarts >= OFTEN and crashed_at is not None and now - crashed_at < CALM_AFTER):
        return PodState.FAILING
    if is_ready:
        return PodState.READY
    return PodState.NOT_READY if phase == "Running" else PodState.STARTING
