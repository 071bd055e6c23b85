"""The result of an image pull from its Job and pod: pulled, not available, or unknown, with the reason. Pure.

A kubelet pulls before it creates a container (pkg/kubelet/kuberuntime, startContainer). So a container that ran, or
that could not be created or started, proves its image. A full disk, an unreachable registry or a quota leaves the
result unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gpu.operands import DRIVER
from health.stack.causes.base import Event, PodSigns, Signs
from health.stack.causes.images import PULLING, image_pull
from wording.durations import spell

PATIENCE = timedelta(minutes=3)  # a registry that is away for a moment is tried again; so is a node without room
NO_POD = timedelta(minutes=1)
# There is no use in trying these again.
FOR_GOOD = frozenset(
    {"image_no_such_tag", "image_not_allowed", "image_pull_secret", "image_other_machine", "image_signature"}
)
# Of the node, and no word of a registry: another node, or this one mended, may well have the image.
OF_THE_NODE = frozenset({"image_no_room", "image_registry_unknown", "image_registry_unreachable"})
# Reasons of a container that waits although its image is there (pkg/kubelet/kuberuntime, pkg/kubelet/container).
AFTER_THE_PULL = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff",
     "PreCreateHookError", "PreStartHookError", "PostStartHookError"}
)  # fmt: skip


class PullOutcome(StrEnum):
    PULLED = "pulled"
    FAILED = "failed"  # a registry refused it, or its content is invalid
    UNKNOWN = "unknown"  # nothing was proven


@dataclass(frozen=True)
class PodLook:
    phase: str = ""
    reason: str = ""  # of the pod: Evicted, OutOfcpu, …
    message: str = ""
    unscheduled: str = ""  # why it has no node; blank: it has one, or the reason is unknown
    begun_at: datetime | None = None  # when its kubelet took it
    waits: str = ""  # the reason for which its container waits
    waits_message: str = ""
    has_run: bool = False
    ran_at: datetime | None = None


@dataclass(frozen=True)
class JobLook:
    image: str
    system: str  # of a driver's image: ubuntu22.04, as in its tag; blank: there is none
    made_at: datetime  # when we saw it first
    failed: str = ""  # reason of its condition Failed: DeadlineExceeded, BackoffLimitExceeded
    failed_message: str = ""
    pod: PodLook | None = None
    events: Sequence[tuple[str, str]] = ()  # (reason, message) about its pod, or about the Job where it has none
    failing_since: datetime | None = None  # when the pull was first seen to fail
    operand: str = DRIVER  # that the image is of; blank: of none


@dataclass(frozen=True)
class PullProgress:
    says: str
    said: str = ""  # the words of registry, scheduler or controller, as they were written
    outcome: PullOutcome | None = None  # None: not yet
    is_failing: bool = False


def progress_of_pull(job: JobLook, *, now: datetime) -> PullProgress:
    pod = job.pod
    if pod is not None and (pod.has_run or pod.waits in AFTER_THE_PULL):
        return _pulled(pod)
    if pod is not None and pod.waits in PULLING:
        return _progress_of_missing_image(job, pod, now=now)
    if job.failed:
        return _progress_of_ended_job(job)
    if pod is None:
        return _without_pod(job, now=now)
    if pod.phase == "Failed":
        why = f"{pod.reason}: {pod.message}" if pod.message else pod.reason
        return PullProgress("The pod failed before the image was requested.", why, PullOutcome.UNKNOWN)
    if pod.unscheduled:
        is_over = now - job.made_at >= PATIENCE
        return PullProgress(
            "The pod cannot be scheduled to the node.", pod.unscheduled, PullOutcome.UNKNOWN if is_over else None
        )
    if pod.begun_at is None:
        return PullProgress("The pod waits for the node.")
    return PullProgress("The node is pulling the image.")


def _pulled(pod: PodLook) -> PullProgress:
    took = pod.ran_at - pod.begun_at if pod.ran_at and pod.begun_at and pod.ran_at >= pod.begun_at else None
    within = f" within {spell(max(took, timedelta(seconds=1)))}" if took is not None else ""
    return PullProgress(f"Pulled{within}.", outcome=PullOutcome.PULLED)


def _progress_of_missing_image(job: JobLook, pod: PodLook, *, now: datetime) -> PullProgress:
    events = [Event(reason, message) for reason, message in job.events]
    signs = PodSigns("", reason=pod.waits, message=pod.waits_message, events=events, image=job.image)
    cause = image_pull(Signs(operand=job.operand, title="", node="", labels={}, pod=signs, os_image=job.system))
    if cause is None:  # without a known cause, the reason in the message decides
        return PullProgress("The image cannot be pulled.", pod.waits_message, is_failing=True)
    is_over = cause.key in FOR_GOOD or (job.failing_since is not None and now - job.failing_since >= PATIENCE)
    says = f"{cause.sentence} {cause.action}".strip()
    outcome = PullOutcome.UNKNOWN if cause.key in OF_THE_NODE else PullOutcome.FAILED
    return PullProgress(says, cause.quote, outcome if is_over else None, is_failing=True)


def _progress_of_ended_job(job: JobLook) -> PullProgress:
    if job.failed == "DeadlineExceeded":
        return PullProgress(
            "The image was not pulled within the time limit of its Job.", job.failed_message, PullOutcome.UNKNOWN
        )
    return PullProgress(
        "The Job failed before the image was pulled.", job.failed_message or job.failed, PullOutcome.UNKNOWN
    )


def _without_pod(job: JobLook, *, now: datetime) -> PullProgress:
    refused = next((message for reason, message in job.events if reason == "FailedCreate"), "")
    outcome = PullOutcome.UNKNOWN if now - job.made_at >= NO_POD else None
    if refused:
        return PullProgress("The Job is not allowed to create a pod.", refused, outcome)
    return PullProgress(
        "The Job has no pod yet." if outcome is None else "The Job has created no pod.", outcome=outcome
    )
