"""What a test Job tells of its node. What was kept from running tells nothing, and nothing is no pass."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.test_jobs.test_progress import (
    TAKEN_AWAY,
    ObservedTestJob,
    ObservedTestPod,
    TestJobOutcome,
    progress_of_test_job,
)
from tests.make import NOON


def told(pod: ObservedTestPod | None = None, *, after_s: float = 0, **given: Any):
    return progress_of_test_job(ObservedTestJob(NOON, pod=pod, **given), now=NOON + timedelta(seconds=after_s))


def test_only_a_job_that_completed_passes():
    assert told(is_complete=True).outcome is TestJobOutcome.PASSED
    assert told(ObservedTestPod(phase="Succeeded", exit_code=0)).outcome is None  # its controller has not said so yet


def test_a_container_that_failed_tells_against_the_node_in_its_own_words():
    progress = told(ObservedTestPod(phase="Failed", exit_code=134, words="CUDA error: an illegal memory access"))

    assert (progress.outcome, progress.says, progress.said) == (
        TestJobOutcome.FAILED, "The test ended with exit code 134.", "CUDA error: an illegal memory access",
    )  # fmt: skip


def test_one_that_ran_and_did_not_end_failed():
    progress = told(failed="DeadlineExceeded", failed_message="Job was active longer", has_run=True)

    assert (progress.outcome, progress.says) == (TestJobOutcome.FAILED, "The test did not end within 15 min.")


@pytest.mark.parametrize("reason", sorted(TAKEN_AWAY))
def test_a_pod_that_was_taken_away_shows_nothing(reason: str):
    assert told(ObservedTestPod(phase="Failed", reason=reason, exit_code=137)).outcome is TestJobOutcome.UNKNOWN


def test_a_pod_that_somebody_deletes_shows_nothing():
    assert told(ObservedTestPod(phase="Running", is_going=True, exit_code=143)).outcome is None
    assert told(failed="BackoffLimitExceeded").outcome is TestJobOutcome.UNKNOWN


def test_one_that_never_started_shows_nothing_and_says_what_kept_it():
    waits = ObservedTestPod(phase="Pending", waits="ImagePullBackOff", waits_message="not found")

    assert told(waits).says == "The container waits: ImagePullBackOff."
    late = told(waits, failed="DeadlineExceeded")
    assert (late.outcome, late.said) == (TestJobOutcome.UNKNOWN, "not found")


def test_without_a_pod_it_waits_a_minute():
    assert told(after_s=59).outcome is None
    assert told(after_s=60).outcome is TestJobOutcome.UNKNOWN


words = st.sampled_from(["", "Evicted", "DeadlineExceeded", "BackoffLimitExceeded", "ErrImagePull"])
pods = st.builds(
    ObservedTestPod,
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]),
    reason=words,
    is_going=st.booleans(),
    unscheduled=words,
    waits=words,
    is_running=st.booleans(),
    exit_code=st.none() | st.integers(0, 255),
)


@given(st.none() | pods, st.booleans(), words, st.booleans(), st.integers(0, 2000))
def test_it_passes_on_a_completed_job_alone_and_fails_on_what_ran_alone(
    pod: ObservedTestPod | None, has_run: bool, failed: str, is_complete: bool, after_s: int
):
    progress = told(pod, after_s=after_s, has_run=has_run, failed=failed, is_complete=is_complete)
    ran = has_run or (pod is not None and (pod.is_running or pod.exit_code is not None))

    assert progress.says
    assert (progress.outcome is TestJobOutcome.PASSED) is is_complete
    assert progress.outcome is not TestJobOutcome.FAILED or ran
