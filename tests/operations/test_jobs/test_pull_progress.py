"""What a pod tells of an image. What proves nothing is never taken for an answer."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.test_jobs.pull_progress import AFTER_THE_PULL, JobLook, PodLook, PullOutcome, progress_of_pull
from tests.make import NOON

IMAGE = "nvcr.io/nvidia/driver:580.999.1-ubuntu22.04"
MISSING = (
    f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": failed to resolve reference '
    f'"{IMAGE}": {IMAGE}: not found'
)
DENIED = f'failed to pull and unpack image "{IMAGE}": unexpected status: 401 Unauthorized'
AWAY = f'failed to pull and unpack image "{IMAGE}": dial tcp 203.0.113.7:443: i/o timeout'


def a_look(pod: PodLook | None = None, **given: Any) -> JobLook:
    return JobLook(IMAGE, "ubuntu22.04", NOON, pod=pod, **given)


def a_pod(**given: Any) -> PodLook:
    return PodLook(**{"phase": "Pending", "begun_at": NOON} | given)


def later(**given: float) -> Any:
    return NOON + timedelta(**given)


def test_a_container_that_ended_proves_its_image_and_says_how_long_it_took():
    told = progress_of_pull(
        a_look(a_pod(phase="Succeeded", has_run=True, ran_at=later(seconds=42))), now=later(minutes=1)
    )

    assert (told.outcome, told.says) == (PullOutcome.PULLED, "Pulled within 42 s.")


@pytest.mark.parametrize("reason", sorted(AFTER_THE_PULL))
def test_a_container_that_cannot_be_made_or_started_proves_it_too(reason: str):
    """A kubelet pulls first."""
    assert progress_of_pull(a_look(a_pod(waits=reason)), now=NOON).outcome is PullOutcome.PULLED


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_a_tag_that_does_not_exist_is_an_answer_at_once(reason: str):
    told = progress_of_pull(a_look(a_pod(waits=reason, waits_message=MISSING)), now=NOON)

    assert told.outcome is PullOutcome.FAILED
    assert told.says.startswith(f"Image does not exist: {IMAGE}.")
    assert told.said == MISSING


def test_what_the_registry_does_not_allow_names_the_pull_secret_that_is_lost():
    lost = "Unable to retrieve some image pull secrets (ngc); attempting to pull the image may not succeed."
    pod = a_pod(waits="ErrImagePull", waits_message=DENIED)

    told = progress_of_pull(a_look(pod, events=[("FailedToRetrieveImagePullSecret", lost)]), now=NOON)

    assert (told.outcome, told.said) == (PullOutcome.FAILED, lost)
    assert "pull secret" in told.says


def after_three_minutes(words: str) -> list[PullOutcome | None]:
    pod = a_pod(waits="ImagePullBackOff", waits_message=words)
    first = progress_of_pull(a_look(pod), now=NOON)
    soon = progress_of_pull(a_look(pod, failing_since=NOON), now=later(minutes=2))
    late = progress_of_pull(a_look(pod, failing_since=NOON), now=later(minutes=3))
    assert first.is_failing
    assert late.said == words
    return [first.outcome, soon.outcome, late.outcome]


@pytest.mark.parametrize("words", ["unexpected status: 503 Service Unavailable", "429 Too Many Requests"])
def test_a_registry_that_does_not_answer_as_it_should_is_tried_for_three_minutes(words: str):
    assert after_three_minutes(f'failed to pull and unpack image "{IMAGE}": {words}') == [
        None,
        None,
        PullOutcome.FAILED,
    ]


@pytest.mark.parametrize(
    "words",
    [
        AWAY,
        f'failed to pull and unpack image "{IMAGE}": dial tcp: lookup nvcr.io: no such host',
        f'failed to pull and unpack image "{IMAGE}": write /var/lib/containerd/x: no space left on device',
    ],
)
def test_what_is_wrong_with_the_node_is_no_word_about_the_image(words: str):
    assert after_three_minutes(words) == [None, None, PullOutcome.UNKNOWN]


def test_a_pod_without_a_place_is_no_word_about_its_image():
    pod = PodLook(phase="Pending", unscheduled="0/64 nodes are available: 1 Insufficient memory.")

    soon, late = (progress_of_pull(a_look(pod), now=later(minutes=minutes)) for minutes in (1, 3))

    assert (soon.outcome, late.outcome) == (None, PullOutcome.UNKNOWN)
    assert late.said == "0/64 nodes are available: 1 Insufficient memory."


def test_a_job_that_may_make_no_pod_says_who_refuses():
    said = 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'

    told = progress_of_pull(a_look(events=[("FailedCreate", said)]), now=later(minutes=1))

    assert (told.outcome, told.says, told.said) == (
        PullOutcome.UNKNOWN,
        "The Job is not allowed to create a pod.",
        said,
    )


def test_a_job_that_was_too_slow_proves_nothing():
    told = progress_of_pull(a_look(failed="DeadlineExceeded"), now=later(minutes=30))

    assert (told.outcome, told.says) == (
        PullOutcome.UNKNOWN,
        "The image was not pulled within the time limit of its Job.",
    )


def test_an_evicted_pod_proves_nothing():
    told = progress_of_pull(
        a_look(a_pod(phase="Failed", reason="Evicted", message="The node was low on disk.")), now=NOON
    )

    assert (told.outcome, told.said) == (PullOutcome.UNKNOWN, "Evicted: The node was low on disk.")


TEXT = st.text(max_size=60)
PODS = st.none() | st.builds(
    PodLook,
    phase=st.sampled_from(["Pending", "Running", "Failed", "Unknown", ""]),
    reason=TEXT,
    message=TEXT,
    unscheduled=TEXT,
    begun_at=st.none() | st.just(NOON),
    waits=st.sampled_from(["", "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "Whatever"]),
    waits_message=TEXT | st.sampled_from([MISSING, DENIED, AWAY]),
)


@given(PODS, TEXT, st.integers(0, 10_000), st.booleans())
def test_without_a_container_that_came_after_the_pull_nothing_is_ever_called_pulled(
    pod: PodLook | None, failed: str, seconds: int, is_failing: bool
):
    job = a_look(pod, failed=failed, failing_since=NOON if is_failing else None)

    told = progress_of_pull(job, now=later(seconds=seconds))

    assert told.outcome is not PullOutcome.PULLED
    assert told.says
