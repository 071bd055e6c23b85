"""Whether an autoscaler adds a node for a pod, from its Events and its objects."""

from dataclasses import replace
from datetime import timedelta

import pytest

from capacity.wait_reasons.answers import ScalingReport, ScalingVerdict
from capacity.wait_reasons.autoscaler_message import CLUSTER_AUTOSCALER, read_report
from capacity.wait_reasons.scaling_verdict import (
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
    found = scaling_verdict(report, facts, now=NOON)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("claim", "verdict", "told"),
    [
        (ScalingClaim("gpu-x7", "", False, "Registered", ""), ScalingVerdict.ADDING, "is not ready: Registered."),
        (ScalingClaim("gpu-x7", "", False, "LaunchFailed", "no capacity"), ScalingVerdict.FAILED, "no capacity"),
        (ScalingClaim("gpu-x7", "ip-1", False, "ResourceNotRegistered", "gpu"), ScalingVerdict.ADDING,
         "Node ip-1 has joined, but its GPUs are not registered."),
        (ScalingClaim("gpu-x7", "ip-1", True, "", ""), ScalingVerdict.ADDING, "of NodeClaim gpu-x7 is ready."),
        (None, ScalingVerdict.FAILED, "NodeClaim gpu-x7 no longer exists"),
    ],
)  # fmt: skip
def test_a_planned_node_is_followed_to_its_claim(claim, verdict, told):
    claims = {claim.name: claim} if claim else {}

    found = verdict_of(read_report(*NOMINATED), ScalingFacts(claims=claims))

    assert found.verdict is verdict
    assert told in found.summary
    assert found.is_adding is (verdict is ScalingVerdict.ADDING)
    assert verdict_of(read_report(*NOMINATED), ScalingFacts()).verdict is ScalingVerdict.ADDING  # claims are not read


def test_a_refusal_is_told_with_the_groups_at_their_maximum():
    found = verdict_of(read_report("NotTriggerScaleUp", "cluster-autoscaler", NO_SCALE_UP), ScalingFacts(groups=[A100]))

    assert (found.verdict, found.details) == (ScalingVerdict.AT_MAXIMUM, ["a100 is at its maximum of 8 nodes"])


def test_no_event_is_silence_and_an_old_status_an_autoscaler_that_is_down():
    backing_off = replace(A100, scale_up="Backoff", error="QUOTA_EXCEEDED: no", unready=2)
    facts = ScalingFacts(groups=[backing_off], status_at=NOON - timedelta(minutes=5))

    silent = verdict_of(None, facts)
    down = verdict_of(None, replace(facts, status_at=NOON - timedelta(minutes=20)))

    assert (silent.autoscaler, silent.verdict) == (CLUSTER_AUTOSCALER, ScalingVerdict.SILENT)
    assert silent.details == ["a100 backs off: QUOTA_EXCEEDED: no", "a100: 2 nodes without registered GPUs"]
    assert (down.verdict, len(down.changes)) == (ScalingVerdict.DOWN, 1)
    assert verdict_of(None, ScalingFacts(pools=[POOL])).details == ["NodePool gpu: 64 of 64 nvidia.com/gpu in use"]
    assert scaling_verdict(None, ScalingFacts(), now=NOON) is None
