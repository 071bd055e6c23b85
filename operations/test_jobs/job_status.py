"""The status of a Job and of its pod, as the API server shows them."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from kube import client
from kube.structs import PodSeen
from kube.structs.meta import find
from kube.structs.pod import ContainerState, ContainerStateTerminated
from operations.test_jobs.pull_progress import PodLook
from operations.test_jobs.test_progress import ObservedTestJob, ObservedTestPod

NEVER_SEEN = "ContainerStatusUnknown"  # the kubelet's reason for a container that it may not have created (pkg/kubelet)


class PodSaid(TypedDict):
    phase: str
    reason: str  # of the pod: Evicted, OutOfcpu, …
    message: str
    unscheduled: str  # why it has no node; blank: it has one, or the reason is unknown
    waits: str  # the reason for which its container waits
    waits_message: str


def newest_pod(job: client.JobSeen, pods: Iterable[PodSeen]) -> PodSeen | None:
    """Returns the newest pod of this very Job; a Job creates another pod if it loses the first."""
    made = [pod for pod in pods if pod.metadata.owner and pod.metadata.owner.uid == job.uid]
    return max(made, key=lambda pod: str(pod.metadata.creation_timestamp or ""), default=None)


def failure_of(job: client.JobSeen) -> tuple[str, str]:
    """Returns reason and message of the condition Failed; empty if the Job has not failed."""
    failed = find(job.status.conditions if job.status else None, "Failed")
    if failed is None or failed.status != "True":
        return "", ""
    return failed.reason or "Failed", failed.message or ""


def state_of(pod: PodSeen) -> ContainerState | None:
    """Returns the state of the one container; None until its kubelet reports one."""
    statuses = pod.status.container_statuses or []
    return statuses[0].state if statuses else None


def finished_at(pod: PodSeen) -> datetime | None:
    """Returns when the container ended, by its kubelet; None until it has ended, or without a time."""
    state = state_of(pod)
    return state.terminated.finished_at if state and state.terminated else None


def ran_s(pod: PodSeen) -> float | None:
    """Returns the seconds for which the container ran; None until it has ended, or without times."""
    state = state_of(pod)
    ended = state.terminated if state else None
    if ended is None or ended.started_at is None or ended.finished_at is None:
        return None
    return max(0.0, (ended.finished_at - ended.started_at).total_seconds())


def pod_status_data(pod: PodSeen) -> PodSaid:
    state, scheduled = state_of(pod), pod.scheduled
    waiting = state.waiting if state else None
    homeless = scheduled if scheduled and scheduled.status == "False" else None
    return {
        "phase": pod.status.phase,
        "reason": pod.status.reason or "",
        "message": pod.status.message or "",
        "unscheduled": (homeless.message or homeless.reason or "no reason given") if homeless else "",
        "waits": (waiting.reason or "") if waiting and waiting.reason != "ContainerCreating" else "",
        "waits_message": (waiting.message or "") if waiting else "",
    }


def observed_test_job(
    job: client.JobSeen, pods: Sequence[PodSeen], *, made_at: datetime, has_run: bool, deadline: timedelta
) -> ObservedTestJob:
    """Returns a test Job with its newest pod. `has_run`: its container was seen to run earlier."""
    newest = newest_pod(job, pods)
    complete = find(job.status.conditions if job.status else None, "Complete")
    failed, failed_message = failure_of(job)
    return ObservedTestJob(
        made_at=made_at,
        has_run=has_run,
        is_complete=complete is not None and complete.status == "True",
        failed=failed,
        failed_message=failed_message,
        pod=_observed_pod(newest) if newest else None,
        deadline=deadline,
    )


def _observed_pod(pod: PodSeen) -> ObservedTestPod:
    state = state_of(pod)
    ended = state.terminated if state else None
    return ObservedTestPod(
        **pod_status_data(pod),
        is_going=pod.metadata.deletion_timestamp is not None,
        is_running=bool(state and state.running),
        exit_code=ended.exit_code if ended else None,
        words=(ended.message or ended.reason or "") if ended else "",
    )


def pod_look(pod: PodSeen) -> PodLook:
    """Returns the pod of an image pull."""
    state = state_of(pod)
    ended = state.terminated if state else None
    return PodLook(
        **pod_status_data(pod),
        begun_at=pod.status.start_time,
        has_run=_has_run(ended) or bool(state and state.running),
        ran_at=ended.started_at if ended else None,
    )


def _has_run(ended: ContainerStateTerminated | None) -> bool:
    return ended is not None and ended.started_at is not None and ended.reason != NEVER_SEEN
