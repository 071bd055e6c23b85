"""Affected nodes of a halted plan are cordoned on a person's request: owned by the plan, and undone with it."""

import pytest

from edges.transition_errors import LostRace
from gpu.labels import CORDONED_BY
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.affected_nodes import cordon_affected
from rollouts.commands.fleet_freezes import Where
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.engine.act.cordons import cordon_again
from rollouts.engine.decide.acts import CordonAgain
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Cordon, GateAnswer, Plan
from rollouts.queries.affected_nodes import affected_nodes
from tests.rollouts.engine.ground import CANARY, REST, Ground
from tests.rollouts.engine.test_cordons import is_cordoned, marks, row, say, settle, uncordon
from tests.rollouts.rows import answered

pytestmark = pytest.mark.rounds


@pytest.fixture
def halted(ground: Ground) -> Ground:
    """The canary runs the new driver, and a gate that fails names it."""
    ground.armed(gates={"driver_version": {}, "soak": {"duration_s": 3600}})
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(3)
    assert ground.target().state == TargetState.CHANGED
    say(plan_control.halt, ground)
    answered(ground.stage(), "workloads_ready", "fail", nodes=[CANARY])
    ground.writes()
    return ground


def ask(ground: Ground, **given: str) -> None:
    plan = Plan.objects.get(pk=ground.plan.pk)
    cordon_affected(plan, actor=ground.ada, reason="Keep work off it.", now=ground.clock(), **given)


def cordoned(ground: Ground) -> Ground:
    ask(ground, seen=affected_nodes(ground.plan).seen)
    ground.rounds(2)
    assert is_cordoned(ground)
    return ground


def test_the_affected_node_is_cordoned_in_the_name_of_the_plan_and_no_other(halted: Ground):
    cordoned(halted)

    assert marks(halted)[CORDONED_BY] == halted.plan.mark
    assert not any(is_cordoned(halted, name) for name in REST)
    assert (row().is_of_halt, row().placed_at is not None) == (True, True)
    assert halted.plan.state == PlanState.HALTED
    assert halted.plan.commands.filter(verb="cordon").exists()


def test_what_the_halting_gate_named_stays_affected_when_the_gate_passes_by_now(halted: Ground):
    halted.plan.refresh_from_db()
    GateAnswer.objects.filter(gate="workloads_ready").update(is_current=False, rested_on_at=halted.plan.state_since)

    assert [node.name for node in affected_nodes(halted.plan).to_cordon] == [CANARY]


def test_somebody_who_uncordons_it_meanwhile_is_noted_and_it_is_cordoned_again(halted: Ground):
    cordoned(halted)
    uncordon(halted)
    halted.rounds(2)

    assert is_cordoned(halted)
    assert halted.plan.events.filter(to="cordon-removed").exists()


def test_a_resumption_takes_it_off_a_changed_node(halted: Ground):
    cordoned(halted)
    GateAnswer.objects.filter(gate="workloads_ready").delete()
    say(plan_control.resume, halted)
    halted.rounds(2)

    assert not is_cordoned(halted)
    assert marks(halted) == {}


def test_an_abort_takes_it_off_before_the_plan_ends(halted: Ground):
    cordoned(halted)
    say(plan_control.abort, halted)
    settle(halted)

    assert halted.plan.state == PlanState.ABORTED, halted.plan.waiting_for
    assert not is_cordoned(halted)
    assert not Cordon.objects.in_force().exists()


def test_in_a_rollback_it_stays_until_the_node_is_back(halted: Ground):
    cordoned(halted)
    say(plan_control.roll_back, halted)
    for _ in range(4):
        halted.round()
        assert is_cordoned(halted)


@pytest.mark.parametrize("stopped", ["stop", "freeze", "switch"])
def test_neither_the_stop_nor_a_freeze_holds_it_back(halted: Ground, stopped: str):
    """As a quarantine: it moves no pod and changes no driver."""
    if stopped == "switch":
        halted.stop_everything("Smoke.")
    elif stopped == "stop":
        fleet_freezes.stop(actor="bea", reason="Smoke.", now=halted.clock())
    else:
        fleet_freezes.freeze(Where(halted.cluster), actor="bea", reason="Quarter end.", now=halted.clock())

    cordoned(halted)

    assert halted.releases() == []


def test_a_cordon_of_somebody_else_in_between_is_left_alone_and_stays(halted: Ground):
    ask(halted)
    halted.cordon(CANARY)
    halted.rounds(2)
    say(plan_control.abort, halted)
    settle(halted)

    assert marks(halted) == {}
    assert is_cordoned(halted)
    assert row().left_reason == "Somebody else had cordoned it before."


def test_a_node_that_was_made_again_under_its_name_is_not_cordoned(halted: Ground):
    ask(halted)
    halted.delete(CANARY)
    halted.join(CANARY, like=REST[0])
    halted.rounds(3)

    assert not is_cordoned(halted)
    assert marks(halted) == {}


def test_a_command_in_between_wins(halted: Ground):
    """The round decided before the plan was resumed: its write is forbidden."""
    ask(halted)
    writer = halted.writer()
    say(plan_control.resume, halted)

    with pytest.raises(LostRace):
        cordon_again(writer, CordonAgain({row().node_uid: CANARY}))

    assert not is_cordoned(halted)


def test_it_is_refused_where_it_means_nothing(halted: Ground):
    with pytest.raises(OutOfDate, match="Other nodes are affected now"):
        ask(halted, seen="0" * 64)
    cordoned(halted)
    with pytest.raises(Refusal, match=f"No affected node can be cordoned: {CANARY} .cordoned by this plan"):
        ask(halted)
    GateAnswer.objects.filter(gate="workloads_ready").delete()
    Cordon.objects.in_force().delete()
    with pytest.raises(Refusal, match="No changed node failed"):
        ask(halted)
    say(plan_control.resume, halted)
    with pytest.raises(Refusal):
        ask(halted)


def test_a_failed_node_that_the_operator_cordoned_stays_so_when_the_operator_lets_it_go(ground: Ground):
    """Z7: the operator uncordons it once its driver pod is in sync, though it failed."""
    ground.armed(gates={"driver_version": {}, "failure_budget": {"tolerate": 0}})
    ground.round()
    ground.cordon(CANARY)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-failed")
    ground.rounds(3)
    assert (ground.plan.state, ground.target().state) == (PlanState.HALTED, TargetState.FAILED)
    ask(ground)
    ground.rounds(2)
    assert marks(ground)[CORDONED_BY] == ground.plan.mark

    uncordon(ground)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(2)

    assert is_cordoned(ground)
