"""A node that the operator could not empty is tried again by a person's word, and by nothing else (hazard Z5)."""

import pytest

from fleet.models import Pod
from rollouts.commands import plan_control
from rollouts.commands.retries import retry
from rollouts.engine import observation as observing
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Target
from simulator.kinds import POD
from tests.rollouts.engine.ground import CANARY, NODES, REST, UPGRADE_STATE, Ground

pytestmark = pytest.mark.rounds


@pytest.fixture
def failed(ground: Ground) -> Ground:
    """The canary was let go, cordoned by the operator, and given up on with the old driver pod still on it."""
    mark = {"metadata": {"labels": {"controller-revision-hash": "of-before"}}}
    ground.store.patch(POD, ground.driver_pod(CANARY), mark, "gpu-operator", how="merge")
    Pod.objects.filter(name=ground.driver_pod(CANARY)).update(revision_hash="of-before")
    ground.armed()
    ground.rounds(2)
    ground.cordon(CANARY)
    ground.set_state(CANARY, "upgrade-failed")
    ground.rounds(3)
    assert (ground.plan.state, ground.target().state) == (PlanState.HALTED, TargetState.FAILED)
    ground.writes()
    return ground


def again(ground: Ground) -> None:
    target = Target.objects.select_related("stage__plan__cluster").get(pk=ground.target().pk)
    retry(target, actor=ground.ada, reason="Its PDB is mended.", now=ground.clock())


def resume(ground: Ground) -> None:
    plan_control.resume(ground.plan, actor=ground.ada, reason="Go on.", now=ground.clock())


@pytest.mark.nightly
def test_it_is_held_at_once_and_goes_once_the_plan_goes_on(failed: Ground):
    before = failed.target().baseline
    again(failed)
    failed.rounds(2)
    assert failed.plan.state == PlanState.HALTED
    assert CANARY in failed.held()
    assert failed.labels(CANARY)[UPGRADE_STATE] == "upgrade-failed"

    resume(failed)
    failed.rounds(2)
    assert failed.labels(CANARY)[UPGRADE_STATE] == "upgrade-required"
    failed.rounds(3)

    assert failed.plan.state == PlanState.PROMOTING
    assert failed.releases() == [CANARY]
    assert failed.target().state in {TargetState.RELEASING, TargetState.RELEASED}
    assert failed.target().baseline == before
    assert {*REST} <= failed.held()


@pytest.mark.nightly
def test_paused_it_stays_held(failed: Ground):
    again(failed)
    resume(failed)
    plan_control.pause(failed.plan, actor=failed.ada, reason="Wait.", now=failed.clock())

    failed.rounds(4)

    assert {*NODES} <= failed.held()
    assert failed.releases() == []


def test_a_rollback_brings_it_back_like_the_others(failed: Ground):
    again(failed)
    plan_control.roll_back(failed.plan, actor=failed.ada, reason="No.", now=failed.clock())

    failed.rounds(4)

    assert failed.plan.state == PlanState.ROLLING_BACK
    assert {*NODES} <= failed.held()


@pytest.mark.nightly
def test_one_that_is_asked_for_while_rows_are_read_is_no_escape(ground: Ground, monkeypatch):
    """Targets are read before holds: what is told in between shows a node that failed, and that somebody freed."""
    mark = {"metadata": {"labels": {"controller-revision-hash": "of-before"}}}
    ground.store.patch(POD, ground.driver_pod(CANARY), mark, "gpu-operator", how="merge")
    Pod.objects.filter(name=ground.driver_pod(CANARY)).update(revision_hash="of-before")
    ground.start(gates={"driver_version": {}, "failure_budget": {"tolerate": 1}}, max_unavailable=2)
    ground.rounds(8)
    ground.cordon(CANARY)
    ground.set_state(CANARY, "upgrade-failed")
    ground.rounds(3)
    assert (ground.plan.state, ground.target().state) == (PlanState.PROMOTING, TargetState.FAILED)
    real = observing.from_rows

    def between(*given):
        monkeypatch.setattr(observing, "from_rows", real)
        again(ground)
        return real(*given)

    monkeypatch.setattr(observing, "from_rows", between)

    ground.rounds(3)

    assert ground.plan.state == PlanState.PROMOTING
    assert ground.target().state != TargetState.FAILED
