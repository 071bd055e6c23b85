from datetime import timedelta

from rollouts.gates.base import Answer, OperandEvidence
from rollouts.gates.operands_ready import OperandsReady
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_held_target, a_target, evidence, ready, values_of

PATIENCE = timedelta(minutes=10)
GATE = OperandsReady(PATIENCE)
CRASHING = OperandEvidence("Validator", is_ready=False, reason="CrashLoopBackOff: cuda failed")


def test_passes_when_every_operand_is_ready():
    assert GATE.evaluate(evidence(a_target()), now=NOON).answer is Answer.PASS


def test_waits_while_an_operand_comes_up_and_fails_when_it_takes_too_long():
    shown = (*ready("Driver", "Device plugin"), CRASHING)
    in_time = a_target(operands=shown, state_since=NOON - PATIENCE)
    late = a_target(operands=shown, state_since=NOON - PATIENCE - timedelta(seconds=1))

    assert GATE.evaluate(evidence(in_time), now=NOON).answer is Answer.WAIT
    result = GATE.evaluate(evidence(late), now=NOON)
    assert result.answer is Answer.FAIL
    assert result.sentence == "node-1 lacks a Ready operand. Validator is not ready (CrashLoopBackOff: cuda failed)."


def test_an_operand_that_was_not_ready_before_is_not_asked_for():
    """What was sick before is not blamed on the change."""
    target = a_target(baseline=a_baseline(operands=("Driver",)), operands=(*ready("Driver"), CRASHING))

    assert GATE.evaluate(evidence(target), now=NOON).answer is Answer.PASS


def test_where_no_operand_was_ready_before_nothing_shows_that_the_stack_is_back():
    """No answer is no yes: it passed, and said that every operand is ready, while all of them crashed."""
    target = a_target(baseline=a_baseline(operands=()), operands=(CRASHING,))

    result = GATE.evaluate(evidence(target), now=NOON)

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "none-before", ("node-1",))
    assert result.is_final
    assert result.sentence.startswith("No operand was Ready on node-1 before the change")


def test_an_operand_without_a_pod_lacks():
    assert a_target(operands=ready("Driver", "Validator")).missing_operands_text == "Device plugin is not ready"


def test_a_node_of_which_nothing_is_known_before_is_no_pass():
    assert GATE.evaluate(evidence(a_target(baseline=None)), now=NOON).answer is Answer.WAIT


def test_a_node_of_which_nobody_knows_what_was_ready_fails_at_no_time():
    said = GATE.evaluate(evidence(a_target(baseline=None)), now=NOON + timedelta(days=1))

    assert (said.answer, said.cause, said.is_final) == (Answer.WAIT, "unknown-before", True)


def test_waits_while_nodes_are_still_to_come():
    result = GATE.evaluate(evidence(a_target("node-1"), a_held_target("node-2")), now=NOON)

    assert result.answer is Answer.WAIT


def test_a_node_that_is_not_seen_is_not_counted_as_back():
    shown = evidence(a_target("node-1", is_seen=False), a_held_target("node-2"))

    result = GATE.evaluate(shown, now=NOON)

    assert result.sentence == "1 of 2 nodes are still to change. The gate evaluates each node after its change."
    assert values_of(result) == {"Nodes with all operands Ready": 0, "Nodes of the stage": 2}


def test_says_how_many_nodes_lack_something():
    shown = evidence(a_target("node-1", operands=()), a_target("node-2", operands=()))

    assert GATE.evaluate(shown, now=NOON).title == "2 nodes lack a Ready operand"
