"""An idle canary proves nothing (hazard Z27): the gate waits for a tenant, lets the stage go once one has worked."""

import pytest

from fleet.models import Node, Pod
from rollouts.commands.plan_drafts import GATES_BACK
from rollouts.lifecycle import StageState, TargetState
from rollouts.models import GateAnswer, Hold
from tests.make import a_pod
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.rounds
MINUTES = 4


def soaking(ground: Ground, **options) -> None:
    """Its canary has changed, and no GPU pod of a tenant is on it."""
    gates = {"driver_version": {}, "failure_budget": {}, "exposure": {"gpu_minutes": MINUTES, **options}}
    ground.armed(gates=gates)
    Pod.objects.filter(node_name=CANARY, is_tenant=True).delete()
    ground.stage().targets.update(state=TargetState.CHANGED, state_since=ground.clock())
    ground.plan.stages.filter(index=0).update(state=StageState.SOAKING, state_since=ground.clock(), timeout_s=600)
    Hold.objects.filter(plan=ground.plan, node_name=CANARY).update(is_wanted=False)
    ground.free(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.take_the_new_driver(CANARY)
    ground.rounds(2)


def answer(ground: Ground) -> GateAnswer:
    return ground.stage().answers.get(gate="exposure", is_current=True)


def a_tenant(ground: Ground) -> None:
    now = ground.clock()
    a_pod(Node.objects.get(name=CANARY), gpus=2, created_at=now, started_at=now, ready_since=now)


def test_it_waits_for_a_tenant_and_goes_on_once_one_has_worked_for_long_enough(ground: Ground):
    soaking(ground)
    ground.clock.move(minutes=5)
    ground.round()
    assert (ground.stage().state, answer(ground).answer, answer(ground).cause) == ("soaking", "wait", "idle")

    a_tenant(ground)
    ground.clock.move(minutes=1)
    ground.round()
    assert (ground.stage().state, answer(ground).cause) == ("soaking", "too-little")
    assert answer(ground).value_of("Work") == 2

    ground.clock.move(minutes=1)
    ground.rounds(2)
    assert answer(ground).answer == "pass"
    assert ground.stage().state == StageState.PASSED


@pytest.mark.nightly
def test_nobody_comes_and_a_person_is_asked(ground: Ground):
    soaking(ground, wait_timeout_s=120)
    assert not ground.plan.commands.in_force().exists()

    ground.clock.move(minutes=3)
    ground.rounds(2)

    assert "a person decides" in ground.plan.commands.in_force().get().reason
    assert ground.stage().state == StageState.SOAKING


@pytest.mark.nightly
def test_where_it_is_only_advisory_it_says_so_and_holds_nothing(ground: Ground):
    soaking(ground, advisory=True)
    ground.rounds(2)

    assert (answer(ground).answer, answer(ground).is_advisory) == ("wait", True)
    assert ground.stage().state == StageState.PASSED


def test_what_is_not_seen_any_more_does_not_pass(ground: Ground):
    soaking(ground)
    a_tenant(ground)
    ground.clock.move(minutes=30)

    ground.round(look=False)

    assert answer(ground).answer == "wait"
    assert ground.stage().state == StageState.SOAKING


def test_the_way_back_does_not_wait_for_tenants(ground: Ground):
    ground.draft(gates={"driver_version": {}, "failure_budget": {}, "exposure": {}})

    assert "exposure" not in GATES_BACK
    assert "exposure" not in ground.plan.stages.get(kind="rollback").gate_options
