"""Why a node failed: in its own history, in the gate that halts, and in the halt of stage and plan."""

import pytest

from fleet.models import DisruptionBudget, Node
from health.models import Finding
from rollouts.gates.base import GAVE_UP
from rollouts.lifecycle import PlanState, TargetState
from tests.make import NOON, a_pod
from tests.rollouts.engine.ground import CANARY, Ground

REASON = "PodDisruptionBudget team-a/web allows no eviction of team-a/web-0."


def kept_by_a_budget(ground: Ground) -> None:
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    a_pod(node, "web-0", owner_kind="ReplicaSet", labels={"app": "web"}, resources={"nvidia.com/gpu": 1})
    DisruptionBudget.objects.create(
        cluster=ground.cluster, uid="uid-of-web", namespace="team-a", name="web", disruptions_allowed=0,
        selector={"matchLabels": {"app": "web"}}, changed_at=NOON,
    )  # fmt: skip


def fails(ground: Ground) -> None:
    ground.set_state(CANARY, "upgrade-failed")
    ground.rounds(2)


@pytest.fixture
def failed(ground: Ground) -> Ground:
    ground.armed()
    ground.rounds(2)
    kept_by_a_budget(ground)
    fails(ground)
    return ground


def test_the_cause_of_a_failed_node_is_the_halt_of_stage_and_plan(failed: Ground):
    assert failed.plan.state == PlanState.HALTED
    assert failed.plan.reason == f"{CANARY} failed. {REASON}"
    assert failed.stage().reason == failed.plan.reason
    assert failed.target().reason == REASON


@pytest.mark.nightly
def test_what_it_was_then_stays_when_the_budget_allows_one_again(failed: Ground):
    DisruptionBudget.objects.filter(cluster=failed.cluster).update(disruptions_allowed=1)

    failed.rounds(2)

    assert failed.stage().answers.get(gate="failure_budget", is_current=True).sentence == f"{CANARY} failed. {REASON}"


def test_a_cause_that_nothing_says_at_first_comes_with_its_finding(ground: Ground):
    ground.armed()
    ground.rounds(2)
    fails(ground)
    assert (ground.target().state, ground.target().reason) == (TargetState.FAILED, GAVE_UP)
    node = Node.objects.get(cluster=ground.cluster, name=CANARY)
    Finding.objects.create(
        cluster=ground.cluster, node=node, subject=f"node {CANARY}", rule="upgrade-failed", severity="critical",
        fingerprint="", title="", causes=[REASON], since=NOON, confirmed_at=NOON, updated_at=NOON,
    )  # fmt: skip

    ground.round()

    assert ground.stage().answers.get(gate="failure_budget", is_current=True).sentence == f"{CANARY} failed. {REASON}"
