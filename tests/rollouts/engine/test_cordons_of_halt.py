"""Affected nodes of a halted plan are cordoned on a person's request: owned by the plan, and undone with it."""

import pytest

from edges.transition_errors import LostRace
from gpu.labels import CORDONED_BY
from people.models import AuditEntry
from rollouts.commands import affected_nodes as commands
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.fleet_freezes import Where
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.engine.act.cordons import BEFORE, cordon_affected, cordon_again
from rollouts.engine.decide.acts import CordonAffected, CordonAgain
from rollouts.findings.plan_findings import halted_plans
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Cordon, GateAnswer, Plan
from rollouts.queries.affected_nodes import affected_nodes, cordons_due
from rollouts.queries.plan_view import plan_on_page
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
    commands.cordon_affected(plan, actor=ground.ada, reason="Keep work off it.", now=ground.clock(), **given)


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


@pytest.mark.nightly
def test_somebody_who_uncordons_it_meanwhile_is_noted_and_it_is_cordoned_again(halted: Ground):
    cordoned(halted)
    uncordon(halted)
    halted.rounds(2)

    assert is_cordoned(halted)
    assert halted.plan.events.filter(to="cordon-removed").exists()


@pytest.mark.nightly
def test_a_resumption_takes_it_off_a_changed_node(halted: Ground):
    cordoned(halted)
    GateAnswer.objects.filter(gate="workloads_ready").delete()
    say(plan_control.resume, halted)
    halted.rounds(2)

    assert not is_cordoned(halted)
    assert marks(halted) == {}


@pytest.mark.nightly
def test_an_abort_takes_it_off_before_the_plan_ends(halted: Ground):
    cordoned(halted)
    say(plan_control.abort, halted)
    settle(halted)

    assert halted.plan.state == PlanState.ABORTED, halted.plan.waiting_for
    assert not is_cordoned(halted)
    assert not Cordon.objects.in_force().exists()


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


@pytest.fixture
def by_itself(ground: Ground) -> Ground:
    """A gate has halted a plan that cordons its affected nodes. The round that cordons them is to come."""
    ground.armed(gates={"driver_version": {}, "failure_budget": {"tolerate": 0}})
    Plan.objects.update(cordon_affected=True)
    ground.round()
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-failed")
    while ground.plan.state != PlanState.HALTED:
        ground.round()
    ground.writes()
    return ground


@pytest.mark.nightly
def test_the_plan_cordons_affected_nodes_by_itself_and_undoes_it(by_itself: Ground):
    by_itself.rounds(2)

    assert (is_cordoned(by_itself), marks(by_itself)[CORDONED_BY]) == (True, by_itself.plan.mark)
    assert not any(is_cordoned(by_itself, name) for name in REST)
    entry = AuditEntry.objects.get(verb="cordon")
    assert (entry.actor, entry.evidence["nodes"]) == ("engine", [CANARY])
    assert f"{CANARY} is cordoned by this plan." in plan_on_page(by_itself.plan, now=by_itself.clock()).besides
    ((_, problem),) = halted_plans(by_itself.cluster, now=by_itself.clock())
    assert CANARY in {item.text for item in problem.evidence if item.label == "Cordoned by the plan"}

    say(plan_control.abort, by_itself)
    settle(by_itself)
    assert (by_itself.plan.state, marks(by_itself)) == (PlanState.ABORTED, {})
    assert not Cordon.objects.in_force().exists()


@pytest.mark.nightly
@pytest.mark.parametrize("stopped", ["stop", "switch"])
def test_a_stop_forbids_it_and_the_page_says_so(by_itself: Ground, stopped: str):
    if stopped == "switch":
        by_itself.stop_everything("Smoke.")
    else:
        fleet_freezes.stop(actor="bea", reason="Smoke.", now=by_itself.clock())
    cordon_affected(by_itself.writer(), CordonAffected(cordons_due(by_itself.plan)))
    by_itself.clock.move(seconds=20)
    by_itself.rounds(2)

    assert (is_cordoned(by_itself), Cordon.objects.exists()) == (False, False)
    assert any("unless a stop" in said for said in plan_on_page(by_itself.plan, now=by_itself.clock()).besides)


@pytest.mark.nightly
def test_by_itself_a_cordon_of_somebody_else_is_left_alone_once(by_itself: Ground):
    by_itself.set_state(CANARY, "upgrade-done")
    by_itself.cordon(CANARY)
    by_itself.rounds(3)

    assert (marks(by_itself), row().left_reason, Cordon.objects.count()) == ({}, BEFORE, 1)
    assert f"{CANARY} is skipped: {BEFORE}" in plan_on_page(by_itself.plan, now=by_itself.clock()).besides


def test_by_itself_it_loses_against_a_command(by_itself: Ground):
    """The round decided before a person resumed the plan: nothing is recorded, and nothing written."""
    due, writer = cordons_due(by_itself.plan), by_itself.writer()
    say(plan_control.resume, by_itself)

    with pytest.raises(LostRace):
        cordon_affected(writer, CordonAffected(due))

    assert (is_cordoned(by_itself), Cordon.objects.exists()) == (False, False)


def test_a_halt_by_a_person_or_without_the_option_cordons_nothing(halted: Ground):
    Plan.objects.update(cordon_affected=True)
    halted.plan.refresh_from_db()
    assert cordons_due(halted.plan) == {}
    GateAnswer.objects.filter(gate="workloads_ready").update(rested_on_at=halted.plan.state_since)
    assert list(cordons_due(halted.plan).values()) == [CANARY]
    halted.plan.cordon_affected = False
    assert cordons_due(halted.plan) == {}
