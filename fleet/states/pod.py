"""What a pod looks like at a glance: one state, the same on pages, in answers and for rules. Pure.

`status` says it as kubectl does; this says what that means. The first that is true of it wins.
"""

from datetime import datetime, timedelta
from enum import StrEnum

# A container that has run so long without a crash starts its back-off anew (kubernetes.io/docs/concepts/workloads/
# pods/pod-lifecycle, “Container restart policy”). One that crashes runs, and may be ready, between two back-offs.
CALM_AFTER = timedelta(minutes=10)
OFTEN = 3  # restarts: fewer are an accident

ENDED = frozenset({"Succeeded", "Failed"})  # phases of a pod that has ended: it holds no resource any more


class PodState(StrEnum):
    UNKNOWN = "unknown"  # its node's kubelet does not report: what is shown is the last that it said
    TERMINATING = "terminating"
    DONE = "done"
    FAILED = "failed"  # it ended otherwise than well, and is not started again
    FAILING = "failing"  # a container of it crashes, or cannot be started
    READY = "ready"
    NOT_READY = "not-ready"  # it runs, and says it cannot be used
    STARTING = "starting"  # it waits for a node, an image, its init containers


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
    """`is_stuck`: a container of it waits for more than its turn, or crashed."""
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
