"""What must hold of every gate, whatever was seen."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.engine.decide.gate_evaluation import all_pass, evaluate
from rollouts.gates import GATES
from rollouts.gates.base import Answer, Evidence, GateResult, When
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.gates.random_evidence import some_evidence, targets
from tests.rollouts.make import (
    TRAITS,
    a_baseline,
    a_finding_on_it,
    a_pod_on_it,
    a_stage,
    a_target,
    a_validator,
    evidence,
)

ALL = [gate() for gate in GATES.values()]  # evaluating all is faster than drawing one
THROUGH = [gate() for gate in GATES.values() if gate.when is When.THROUGH]
ALL_THROUGH = pytest.mark.parametrize("gate", THROUGH, ids=[gate.key for gate in THROUGH])
NOT_OF_ONE = re.compile(
    r"\ball 1\b|\b1 (GPU )?(nodes|pods|approvals)\b|\b1 (node|pod|approval) (are|were|have|run|do)\b"
)
one_unseen = st.tuples(targets("node-0", is_seen=st.just(value=False)), targets("node-1"))


@given(shown=some_evidence())
def test_answers_in_a_title_whatever_was_seen(shown: Evidence):
    for gate in ALL:
        result = gate.evaluate(shown, now=NOON)

        assert isinstance(result, GateResult), gate.key
        assert result.answer in Answer, gate.key
        assert result.title.strip(), gate.key
        assert result.answer is Answer.PASS or result.summary or result.steps, gate.key
        assert set(result.nodes) <= {target.name for target in shown.targets} | {"node-0"}, gate.key  # of the next wave


@given(shown=some_evidence())
def test_title_and_summary_are_short_enough_to_be_shown_whole(shown: Evidence):
    for gate in ALL:
        result = gate.evaluate(shown, now=NOON)

        assert not result.title.endswith("…"), result.title
        assert not result.summary.endswith("…"), result.summary
        assert not result.title.endswith("."), result.title
        assert all(step.endswith(".") for step in result.steps), result.steps


@given(shown=some_evidence())
def test_evidence_has_labels_and_plain_values(shown: Evidence):
    for gate in ALL:
        for item in gate.evaluate(shown, now=NOON).evidence:
            assert item.label, gate.key
            assert isinstance(item.value, str | int | float), item
            assert item.value != "", item


@given(shown=some_evidence())
def test_whatever_is_no_pass_names_its_cause_without_a_number_of_nodes(shown: Evidence):
    """Another cause is another stored answer; new numbers are not."""
    for gate in ALL:
        result = gate.evaluate(shown, now=NOON)

        assert result.answer is Answer.PASS or result.cause, gate.key
        assert not any(target.name in result.cause for target in shown.targets), gate.key


@given(shown=some_evidence())
def test_speaks_of_one_as_of_one(shown: Evidence):
    for gate in ALL:
        sentence = gate.evaluate(shown, now=NOON).sentence

        assert not NOT_OF_ONE.search(sentence), gate.key


@given(shown=some_evidence())
def test_the_same_evidence_gets_the_same_answer(shown: Evidence):
    for gate in ALL:
        assert gate.evaluate(shown, now=NOON) == gate.evaluate(shown, now=NOON), gate.key


@given(shown=some_evidence(of_targets=st.just(())))
def test_a_stage_without_targets_never_passes(shown: Evidence):
    for gate in THROUGH:
        results = evaluate(a_stage(evidence=shown, gates=(gate,)), When.THROUGH, now=NOON)

        assert results[gate.key].answer is not Answer.PASS, gate.key


not_changed = st.sampled_from(sorted({*TargetState} - {TargetState.CHANGED}))


@given(shown=some_evidence(), states=st.tuples(not_changed, not_changed, not_changed))
def test_a_stage_in_which_nothing_has_changed_never_passes(shown: Evidence, states: tuple[TargetState, ...]):
    """Whatever was read of its nodes: an answer of yes needs something that was changed."""
    unchanged = tuple(replace(target, state=state) for target, state in zip(shown.targets, states, strict=False))
    soaked = replace(shown, targets=unchanged, others_passing_since=None)

    for gate in THROUGH:
        results = evaluate(a_stage(evidence=soaked, gates=(gate,)), When.THROUGH, now=NOON)

        assert results[gate.key].answer is not Answer.PASS, gate.key


BROKEN = a_target(
    "broken",
    state_since=NOON - timedelta(days=1),
    driver_version="1.2.3",
    upgrade_state="upgrade-failed",
    is_ready=False,
    allocatable={},
    operands=(),
    mig_config_state="failed",
    is_unschedulable=True,
    traits=TRAITS | {"kernel": "another"},
    baseline=a_baseline(mig_config_state="success"),
    validator=a_validator(is_ready=False, restarts=99),
    workloads=(a_pod_on_it(is_ready=False, restarts=99),),
    test_job=None,
    work=None,
    findings=(a_finding_on_it(),),
    telemetry=None,
)


@given(shown=some_evidence())
def test_one_more_broken_node_never_makes_a_fail_a_pass(shown: Evidence):
    for gate in ALL:
        before = gate.evaluate(shown, now=NOON).answer

        after = gate.evaluate(replace(shown, targets=(*shown.targets, BROKEN)), now=NOON).answer

        assert before is not Answer.FAIL or after is Answer.FAIL, gate.key


@pytest.mark.parametrize(
    "gate", [gate for gate in THROUGH if gate.key != "soak"], ids=[g.key for g in THROUGH if g.key != "soak"]
)
def test_a_node_on_which_all_is_broken_passes_nowhere(gate):
    assert gate.evaluate(evidence(BROKEN), now=NOON).answer is not Answer.PASS


@given(shown=some_evidence(of_targets=one_unseen))
def test_a_stage_with_an_unseen_target_never_passes(shown: Evidence):
    """Unknown is not a pass (Z25)."""
    counted = {target.name for target in shown.counted if not target.is_seen}

    for gate in THROUGH:
        results = evaluate(a_stage(evidence=shown, gates=(gate,)), When.THROUGH, now=NOON)

        assert not counted or results[gate.key].answer is not Answer.PASS, gate.key


@ALL_THROUGH
def test_a_target_that_nobody_sees_is_not_called_broken(gate):
    """Unseen is not unhealthy: a node that the cluster no longer shows waits, it does not fail (Z25)."""
    long_ago = NOON - timedelta(days=1)
    gone = a_target(
        is_seen=False,
        state_since=long_ago,
        driver_version="",
        upgrade_state="",
        is_ready=None,
        allocatable={},
        operands=(),
    )

    assert gate.evaluate(evidence(gone), now=NOON).answer is not Answer.FAIL


@ALL_THROUGH
@pytest.mark.parametrize("state", sorted({*TargetState} - {TargetState.CHANGED, TargetState.EXCLUDED}))
def test_never_passes_while_a_node_is_on_its_way(gate, state: TargetState):
    shown = evidence(a_target("node-1"), a_target("node-2", state=state), others_passing_since=None)

    results = evaluate(a_stage(evidence=shown, gates=(gate,)), When.THROUGH, now=NOON)

    assert state is TargetState.FAILED or results[gate.key].answer is not Answer.PASS


@ALL_THROUGH
def test_passes_when_all_is_as_before(gate):
    shown = evidence(a_target(state_since=NOON - timedelta(minutes=5)), others_passing_since=NOON - timedelta(hours=1))

    assert gate.evaluate(shown, now=NOON).answer is Answer.PASS


@given(shown=some_evidence())
def test_a_node_that_a_person_took_out_is_not_evaluated(shown: Evidence):
    """What was excluded answers for nothing any more, or a failed node could never be given up."""
    out = a_target(
        "out", state=TargetState.EXCLUDED, upgrade_state="upgrade-failed", is_ready=False, baseline=a_baseline()
    )
    with_it = replace(shown, targets=(*shown.targets, out))

    for gate in THROUGH:
        assert gate.evaluate(with_it, now=NOON).answer is gate.evaluate(shown, now=NOON).answer, gate.key


def test_a_gate_that_was_not_asked_is_no_pass():
    stage = a_stage(a_target(), gates=tuple(THROUGH))
    passing = GateResult(Answer.PASS, title="Fine")

    assert all_pass(stage, {gate.key: passing for gate in THROUGH})
    assert not all_pass(stage, {gate.key: passing for gate in THROUGH[1:]})


def test_a_stage_without_a_gate_never_passes():
    assert not all_pass(a_stage(a_target(), gates=()), {})


def test_an_approval_alone_lets_no_stage_pass():
    stage = a_stage(a_target(), gates=(GATES["approval"](),))

    assert not all_pass(stage, {"approval": GateResult(Answer.PASS, title="Approved")})
