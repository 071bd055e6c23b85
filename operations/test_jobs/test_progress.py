"""The result of a test Job from its Job and pod: passed, failed, or no answer, with the reason. Pure.

A container that ran and ended with a non-zero exit code, or did not end, is a failure. A container that was kept from
running says nothing about the GPUs.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from operations.test_jobs.test_job import DEADLINE
from wording.durations import spell

NO_POD = timedelta(minutes=1)
TIMED_OUT = "The test did not end within"  # how the words of a Job begin that reached its deadline
# Reasons of a pod that failed by no fault of its container (pkg/kubelet/eviction, nodeshutdown; pkg/scheduler).
TAKEN_AWAY = frozenset({"Evicted", "Preempting", "Terminated", "NodeShutdown", "NodeLost"})


class TestJobOutcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"  # nothing was proven


@dataclass(frozen=True)
class ObservedTestPod:
    phase: str = ""
    reason: str = ""  # of the pod: Evicted, UnexpectedAdmissionError, …
    message: str = ""
    is_going: bool = False  # somebody deletes it
    unscheduled: str = ""  # why it has no node; blank: it has one, or the reason is unknown
    waits: str = ""  # the reason for which its container waits
    waits_message: str = ""
    is_running: bool = False
    exit_code: int | None = None  # None: its container has not ended
    words: str = ""  # last message of the failed container


@dataclass(frozen=True)
class ObservedTestJob:
    made_at: datetime  # when we saw it first
    has_run: bool = False  # its container ran
    is_complete: bool = False
    failed: str = ""  # reason of its condition Failed: DeadlineExceeded, BackoffLimitExceeded
    failed_message: str = ""
    pod: ObservedTestPod | None = None
    refused: str = ""  # why it may make no pod
    deadline: timedelta = DEADLINE


@dataclass(frozen=True)
class TestJobProgress:
    says: str
    said: str = ""  # the words of container, scheduler, kubelet or controller, as they were written
    outcome: TestJobOutcome | None = None  # None: not yet
    has_run: bool = False


def progress_of_test_job(job: ObservedTestJob, *, now: datetime) -> TestJobProgress:
    pod = job.pod
    has_run = job.has_run or (pod is not None and (pod.is_running or pod.exit_code is not None))
    if job.is_complete:
        return TestJobProgress("It completed.", outcome=TestJobOutcome.PASSED, has_run=True)
    if pod is not None and pod.exit_code and not pod.is_going and pod.reason not in TAKEN_AWAY:
        return TestJobProgress(
            f"The test ended with exit code {pod.exit_code}.", pod.words, TestJobOutcome.FAILED, has_run=True
        )
    if job.failed == "DeadlineExceeded" and has_run:
        says = f"{TIMED_OUT} {spell(job.deadline)}."
        return TestJobProgress(says, job.failed_message, TestJobOutcome.FAILED, has_run=True)
    if job.failed:
        return _failed_without_reason(job, has_run=has_run)
    if pod is None:
        return _without_pod(job, now=now)
    if pod.phase == "Failed":
        why = f"{pod.reason}: {pod.message}" if pod.message else pod.reason
        return TestJobProgress("The pod failed before the test ended.", why, TestJobOutcome.UNKNOWN, has_run)
    if pod.unscheduled:
        return TestJobProgress("The pod cannot be scheduled to the node.", pod.unscheduled)
    if pod.waits:
        return TestJobProgress(f"The container waits: {pod.waits}.", pod.waits_message, has_run=has_run)
    return TestJobProgress("It runs." if has_run else "The pod waits for the node.", has_run=has_run)


def _failed_without_reason(job: ObservedTestJob, *, has_run: bool) -> TestJobProgress:
    said = job.failed_message or job.failed
    if job.failed == "DeadlineExceeded":
        why = (job.pod and (job.pod.unscheduled or job.pod.waits_message)) or said
        return TestJobProgress(
            f"The test was not started within {spell(job.deadline)}.", why, TestJobOutcome.UNKNOWN, has_run
        )
    return TestJobProgress("The Job failed, and its pod reports no reason.", said, TestJobOutcome.UNKNOWN, has_run)


def _without_pod(job: ObservedTestJob, *, now: datetime) -> TestJobProgress:
    is_over = now - job.made_at >= NO_POD
    outcome = TestJobOutcome.UNKNOWN if is_over else None
    if job.refused:
        return TestJobProgress("The Job is not allowed to create a pod.", job.refused, outcome)
    return TestJobProgress("The Job has created no pod." if is_over else "The Job has no pod yet.", outcome=outcome)
