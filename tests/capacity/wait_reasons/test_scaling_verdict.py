"""Whether an autoscaler adds a node for a pod, from its Events and its objects."""

from dataclasses import replace
from datetime import timedelta

import pytest

from capacity.wait_reasons.answers import ScalingReport, ScalingVerdict
from capacity.wait_reasons.autoscaler_message import CLUSTER_AUTOSCALER, read_report
from capacity.wait_reasons.scaling_verdict import (
    CLAIMS,
    STATUS,
    ScalingClaim,
    ScalingFacts,
    ScalingGroup,
    ScalingPool,
    scaling_verdict,
)
from tests.make import NOON

NOMINATED = ("Nominated", "karpenter", "Pod should schedule on: nodeclaim/gpu-x7")
NO_SCALE_UP = "pod didn't trigger scale-up: 1 max node group size reached, 2 Insufficient nvidia.com/gpu"
A100 = ScalingGroup("a100", 8, 8, 0, "NoActivity", "")
POOL = ScalingPool("gpu", True, "", {"nvidia.com/gpu": "64"}, {"nvidia.com/gpu": "64"})


def verdict_of(report: ScalingReport | None, facts: ScalingFacts) -> ScalingReport:
    found = scaling_verdict(report, facts)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("claim", "verdict", "told"),
    [
        (ScalingClaim("gpu-x7", "", False, "Registered", ""), ScalingVerdict.ADDING, "is not ready: Registered."),
        (ScalingClaim("gpu-x7", "", False, "LaunchFailed", "no capacity"), ScalingVerdict.FAILED, "no capacity"),
        (ScalingClaim("gpu-x7", "ip-1", False, "ResourceNotRegistered", "gpu"), ScalingVerdict.ADDING,
         "Node ip-1 has joined, but its GPUs are not registered."),
        (ScalingClaim("gpu-x7", "", False, "", ""), ScalingVerdict.ADDING, "NodeClaim gpu-x7 has no status yet."),
        (ScalingClaim("gpu-x7", "ip-1", True, "", ""), ScalingVerdict.READY, "of NodeClaim gpu-x7 is ready."),
        (None, ScalingVerdict.FAILED, "NodeClaim gpu-x7 no longer exists"),
    ],
)  # fmt: skip
def test_a_planned_node_is_followed_to_its_claim(claim, verdict, told):
    claims = {claim.name: claim} if claim else {}

    found = verdict_of(read_report(*NOMINATED), ScalingFacts(claims=claims, claims_seen_at=NOON))

    assert found.verdict is verdict
    assert told in found.summary
    assert found.is_adding is (verdict is not ScalingVerdict.FAILED)
    assert verdict_of(read_report(*NOMINATED), ScalingFacts()).verdict is ScalingVerdict.ADDING  # claims are not read


@pytest.mark.parametrize(
    ("seen_at", "stale", "told"),
    [
        (NOON - timedelta(minutes=1), (), "It planned the pod on nodeclaim/gpu-x7."),  # before the Event
        (NOON + timedelta(minutes=1), (CLAIMS,), "NodeClaim gpu-x7 is not known since 2026-11-21 12:01 UTC."),
    ],
)
@pytest.mark.parametrize("claims", [{}, {"gpu-x7": ScalingClaim("gpu-x7", "", False, "LaunchFailed", "")}])
def test_a_claim_that_is_not_seen_has_not_failed(claims, seen_at, stale, told):
    report = replace(read_report(*NOMINATED), at=NOON)

    found = verdict_of(report, ScalingFacts(claims=claims, claims_seen_at=seen_at, stale=stale))

    assert (found.verdict, found.is_adding, found.summary) == (ScalingVerdict.ADDING, True, told)


@pytest.mark.parametrize(
    ("seen", "group", "stale", "verdict"),
    [
        (60, "Backoff", (), ScalingVerdict.FAILED),
        (60, "InProgress", (), ScalingVerdict.ADDING),
        (60, "Backoff", (STATUS,), ScalingVerdict.ADDING),
        (5, "Backoff", (), ScalingVerdict.ADDING),  # the status may be older than the Event
    ],
)
def test_a_scale_up_failed_once_its_group_backs_off(seen, group, stale, verdict):
    message = "pod triggered scale-up: [{https://g/instanceGroups/a100 3->4 (max: 8)}]"
    report = replace(read_report("TriggeredScaleUp", "cluster-autoscaler", message), at=NOON)
    facts = ScalingFacts(
        groups=[replace(A100, scale_up=group, error="QUOTA_EXCEEDED: no")], status_at=NOON, stale=stale,
        status_seen_at=NOON + timedelta(seconds=seen),
    )  # fmt: skip

    found = verdict_of(report, facts)

    assert found.verdict is verdict
    assert (found.summary == "a100 backs off: QUOTA_EXCEEDED: no.") is (verdict is ScalingVerdict.FAILED)


def test_a_refusal_is_told_with_the_groups_at_their_maximum():
    found = verdict_of(read_report("NotTriggerScaleUp", "cluster-autoscaler", NO_SCALE_UP), ScalingFacts(groups=[A100]))

    assert (found.verdict, found.details) == (ScalingVerdict.AT_MAXIMUM, ["a100 is at its maximum of 8 nodes"])


def test_no_event_is_silence_and_an_old_status_an_autoscaler_that_is_down():
    backing_off = replace(A100, scale_up="Backoff", error="QUOTA_EXCEEDED: no", unready=2)
    facts = ScalingFacts(groups=[backing_off], status_at=NOON - timedelta(minutes=5), status_seen_at=NOON)
    old = replace(facts, status_at=NOON - timedelta(minutes=20))

    silent = verdict_of(None, facts)
    down = verdict_of(None, old)

    assert (silent.autoscaler, silent.verdict) == (CLUSTER_AUTOSCALER, ScalingVerdict.SILENT)
    assert silent.details == ["a100 backs off: QUOTA_EXCEEDED: no", "a100: 2 nodes without registered GPUs"]
    assert (down.verdict, len(down.changes)) == (ScalingVerdict.DOWN, 1)
    assert verdict_of(None, ScalingFacts(pools=[POOL])).details == ["NodePool gpu: 64 of 64 nvidia.com/gpu in use"]
    assert scaling_verdict(None, ScalingFacts()) is None


def test_a_status_that_is_not_seen_is_unknown_however_old_it_is():
    """Without news of the status, its age is that of the watch."""
    facts = ScalingFacts(groups=[A100], status_at=NOON - timedelta(minutes=20), status_seen_at=NOON, stale=[STATUS])

    found = verdict_of(None, facts)

    assert (found.verdict, found.summary) == (
        ScalingVerdict.UNKNOWN,
        "Its status is not known since 2026-11-21 12:00 UTC.",
    )


def test_a_status_of_an_autoscaler_that_has_gone_does_not_hide_karpenter():
    facts = ScalingFacts(pools=[POOL], groups=[A100], status_at=NOON - timedelta(days=20), status_seen_at=NOON)

    found = verdict_of(None, facts)

    assert (found.autoscaler, found.verdict) == ("Karpenter", ScalingVerdict.SILENT)
    assert "The last status of the cluster autoscaler was written at" in found.details[-1]
    refused = verdict_of(read_report("NotTriggerScaleUp", "cluster-autoscaler", NO_SCALE_UP), facts)
    assert len(refused.details) == 1  # not its groups, of twenty days ago
