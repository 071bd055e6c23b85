"""The state of a pod, for pages, REST and rules. Pure.

`status` is kubectl's word; this is its meaning. The first true condition counts.
"""

from datetime import datetime, timedelta
from enum import StrEnum

# After this time without a crash the back-off restarts (kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle,
# “Container restart policy”). A crashing container runs, and may be ready, between two back-offs.
SETTLED_AFTER = timedelta(minutes=10)
OFTEN = 3  # restarts; fewer may be accidental

ENDED = frozenset({"Succeeded", "Failed"})  # phases of a finished pod, which holds no resource


# Reasons of a kubelet for a rejected pod, which is final (kubernetes, pkg/kubelet/lifecycle/predicate.go,
# cm/devicemanager/manager.go, cm/topologymanager). OutOf is followed by the resource: OutOfnvidia.com/gpu.
REFUSALS = (
    "UnexpectedAdmissionError",
    "TopologyAffinityError",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "TaintToleration",
)
OUT_OF = "OutOf"


class PodState(StrEnum):
    """The states, worst first, as lists show them."""

    FAILING = "failing"  # a container crashes or cannot start
    REJECTED = "rejected"  # its kubelet refused it
    PENDING = "pending"  # has no node
    NOT_READY = "not-ready"  # running but not usable
    UNKNOWN = "unknown"  # its node's kubelet is silent; the last report is shown
    STARTING = "starting"  # waits on its node for an image, a volume or init containers
    TERMINATING = "terminating"
    FAILED = "failed"  # failed and not restarted
    READY = "ready"
    DONE = "done"


TITLES: dict[PodState, str] = {state: state.value.capitalize() for state in PodState} | {
    PodState.NOT_READY: "Not ready",
    PodState.READY: "Running",
}
CODES: dict[PodState, int] = {state: rank for rank, state in enumerate(PodState)}


def pod_state(
    *,
    phase: str,
    status: str,
    is_bound: bool,
    is_ready: bool,
    is_leaving: bool,
    is_stuck: bool,
    restarts: int,
    crashed_at: datetime | None,
    is_node_silent: bool,
    now: datetime,
) -> PodState:
    """Returns the state. `is_bound`: it has a node. `is_stuck`: a container waits abnormally or crashed."""
    if phase == "Succeeded":
        return PodState.DONE
    if phase == "Failed":
        return PodState.REJECTED if is_refusal(status) else PodState.FAILED
    if is_node_silent or phase == "Unknown":
        return PodState.UNKNOWN
    if is_leaving:
        return PodState.TERMINATING
    if is_stuck or (restarts >= OFTEN and crashed_at is not None and now - crashed_at < SETTLED_AFTER):
        return PodState.FAILING
    if is_ready:
        return PodState.READY
    if phase == "Running":
        return PodState.NOT_READY
    return PodState.STARTING if is_bound else PodState.PENDING


def is_refusal(status: str) -> bool:
    """Tells whether a kubelet refused the pod."""
    return status in REFUSALS or status.startswith(OUT_OF)
