"""Events of tenants' pods whose message no pattern knows: their reason tells, and an unknown one is shown."""

from datetime import UTC, datetime

import pytest

from health.stack.causes import Event, Weight, why_waits
from tests.health.stack.signs import a_pod, an_event, signs


@pytest.mark.parametrize("phase", ["Pending", "Running"])
@pytest.mark.parametrize(
    ("reason", "key"),
    [
        ("FailedMapVolume", "event_volume"),
        ("ClaimPrepareFailed", "event_claim"),
        ("FailedPodSandBoxStatus", "event_runtime"),
        ("InspectFailed", "event_image"),
        ("ExceededGracePeriod", "event_end"),
        ("FailedPostStartHook", "event_hook"),
        ("FailedBinding", "event_scheduler"),
        ("ErrWorkloadCompose", "event_queue"),
        ("InvalidDoNotDisruptAnnotation", "event_settings"),
        ("Disrupted", "event_evicted"),
        ("TaintManagerEviction", "event_node"),
        ("EvictionThresholdMet", "event_evicted"),
        ("ResizeInfeasible", "event_resize"),
    ],
)
def test_a_reason_tells_where_its_message_is_unknown(phase, reason, key):
    said = "words that nobody has heard of"
    cause = why_waits(signs("", a_pod(phase=phase, is_overdue=True, events=[an_event(said, reason)])))

    assert cause.key == key
    assert cause.quote == said
    assert cause.action
    assert "{" not in cause.sentence + cause.action


@pytest.mark.parametrize(("reason", "key"), [("NodeNotReady", "event_node"), ("Evicted", "event_evicted")])
def test_an_event_of_the_past_has_its_time_and_calls_no_pod_wrong(reason, key):
    event = Event(reason, "words that nobody has heard of", datetime(2026, 11, 30, 9, 41, tzinfo=UTC))
    cause = why_waits(signs("", a_pod(is_overdue=True, events=[event])))
    probe = an_event("Readiness probe failed: connection refused", "Unhealthy")

    assert (cause.key, cause.weight, "last at 09:41 UTC: words" in cause.summary) == (key, Weight.WAITING, True)
    assert why_waits(signs("", a_pod(is_overdue=True, events=[event, probe]))).key == "tenant_not_ready"


@pytest.mark.parametrize(("phase", "key"), [("Pending", "not_started"), ("Running", "tenant_not_ready")])
def test_a_warning_with_an_unknown_reason_is_shown(phase, key):
    said = "words that nobody has heard of"
    cause = why_waits(signs("", a_pod(phase=phase, is_overdue=True, events=[an_event(said, "NeverHeardOf")])))

    assert (cause.key, cause.quote) == (key, said)
    assert "The Event NeverHeardOf" in cause.sentence
    assert said in cause.sentence


def test_an_event_that_stops_no_pod_is_no_reason():
    aside = an_event("The tmpfs noswap option is not supported", "PossibleMemoryBackedVolumesOnDisk")

    assert why_waits(signs("", a_pod(phase="Pending", is_overdue=True, events=[aside]))).key == "being_created"


def test_a_container_that_ended_is_not_explained_by_a_reason():
    pod = a_pod(
        reason="CrashLoopBackOff", container="main", last_words="done",
        events=[an_event("words that nobody has heard of", "FailedSync")],
    )  # fmt: skip

    assert why_waits(signs("", pod)).key == "tenant_crashed"
