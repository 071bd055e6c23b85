from rollouts.preflight.rules.operator_down import is_down, is_unseen
from tests.rollouts.make import steps_of
from tests.rollouts.preflight.make import facts

SAID = "The GPU operator does not run (Deployment gpu-operator/gpu-operator, 0 of 1 pods ready)."


def test_an_operator_that_runs_is_well():
    assert [*is_down(facts()), *is_unseen(facts())] == []


def test_one_that_does_not_run_bars_the_start_and_says_what_mends_it():
    (check,) = is_down(facts(operator_down=SAID))

    assert (check.code, check.summary) == ("operator-down", SAID)
    assert "scale it to 1" in steps_of(check)
    assert not check.may_be_overridden


def test_one_that_nobody_sees_is_not_taken_for_one_that_is_down():
    unseen = facts(operator_unseen="Deployments may not be read here.")

    (check,) = is_unseen(unseen)

    assert check.sentence == "The state of the GPU Operator is unknown. Deployments may not be read here."
    assert list(is_down(unseen)) == []
