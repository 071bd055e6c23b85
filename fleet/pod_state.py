"""What a pod looks like at a glance: one state, the same on pages, in answers and for rules. Pure.

`status` says it as kubectl does; this says what that means. The first that is true of it wins.
"""

from datetime import datetime, timedelta
from enum import StrEnum

# A container that has run so long without a crash starts its back-off anew (kubernetes.io/docs/concepts/workloads/
# pods/pod-lifecycle, “Container restart policy”). One that crashes runs, and may be ready, between two back-offs.
CALM_AFTER = timedelta(minutes=10)
OFTEN = 3  # restarts: fewer are an accident
OWNED_FOR = timedelta(
    hours=1
)  # its owner has made another: what its node did to it is news for as long as a shift looks
BARE_FOR = timedelta(days=1)  # nobody makes it again
# What a kubelet says of a pod that it refuses or ends, whatever the pod would have done (kubernetes/kubernetes:
# pkg/kubelet/lifecycle/predicate.go, eviction/eviction_manager.go, nodeshutdown, preemption, cm/topologymanager).
BY_KUBELET = frozenset({
    "Evicted", "NodeAffinity", "NodeShutdown", "Preempting", "Shutdown", "Terminated", "TopologyAffinityError",
    "UnexpectedAdmissionError",
})  # fmt: skip
LACKING = "OutOf"  # and the resource: OutOfcpu, OutOfnvidia.com/gpu


class PodState(StrEnum):
    UNKNOWN = "unknown"  # its node's kubelet does not report: what is shown is the last that it said
    TERMINATING = "terminating"
    DONE = "done"
    FAILED = "failed"  # it ended otherwise than well, and is not started again
    FAILING = "failing"  # a container of it crashes, or cannot be started
    READY = "ready"
    NOT_READY = "not-ready"  # it runs, and says it cannot be used
    STARTING = "starting"  # it waits for a node, an image, its init containers


def failed_of(because: str) -> str:
    """The reason that the pod itself bears. Blank: it has none, its containers ended by themselves."""
    return because.partition(":")[0]


def is_told(owner_kind: str, reason: str, ago: timedelta) -> bool:
    """Whether a pod that failed for good is worth a person's look.

    What its own containers did is the business of who owns it: a Job tries again, a Workflow goes another way. A pod
    without an owner has nobody, and what the kubelet did to it is the node's, whoever owns it.
    """
    if not owner_kind:
        return ago <= BARE_FOR
    return (reason in BY_KUBELET or reason.startswith(LACKING)) and ago <= OWNED_FOR


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
