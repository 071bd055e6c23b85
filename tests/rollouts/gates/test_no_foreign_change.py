from typing import Any

import pytest

from rollouts.gates.base import Answer, GateResult
from rollouts.gates.no_foreign_change import NoForeignChange
from tests.rollouts.make import TRAITS, a_baseline, a_target, evidence


def evaluated(*targets) -> GateResult:
    return NoForeignChange().evaluate(evidence(*targets), now=None)  # type: ignore[arg-type]


def test_passes_while_only_the_driver_is_another():
    result = evaluated(a_target("a"), a_target("b"))

    assert result.answer is Answer.PASS
    assert (
        result.sentence
        == "Nobody else changed the 2 changed nodes. Kernel, OS image, MIG layout and cordons are as at the release."
    )


def test_another_kernel_is_another_machine():
    result = evaluated(a_target("a", traits=TRAITS | {"kernel": "6.8.0-64"}), a_target("b"))

    assert (result.answer, result.nodes) == (Answer.FAIL, ("a",))
    assert result.sentence == "a differs from the state at release. Its kernel is 6.8.0-64, and was 5.15.0-151."


@pytest.mark.parametrize(
    ("given", "says"), [({"is_unschedulable": True}, "cordoned"), ({"is_held_by_others": True}, "held")]
)
def test_what_can_be_taken_back_is_waited_for(given: dict[str, Any], says: str):
    result = evaluated(a_target("a", **given), a_target("b"))

    assert (result.answer, result.nodes) == (Answer.WAIT, ("a",))
    assert result.sentence == f"Somebody else changed a since the release. The node was {says}."


def test_a_cordon_from_before_is_not_blamed_on_anybody():
    assert evaluated(a_target(is_unschedulable=True, baseline=a_baseline(is_unschedulable=True))).answer is Answer.PASS


def test_of_what_nobody_remembers_nothing_is_claimed():
    result = evaluated(a_target(baseline=a_baseline(traits={}), traits=TRAITS | {"kernel": "6.8.0-64"}))

    assert (result.answer, result.is_final) == (Answer.WAIT, True)


def test_our_own_cordon_is_nobody_elses():
    """Z8: it keeps pods off until the test Job has completed."""
    assert evaluated(a_target(is_unschedulable=True, is_cordoned_by_us=True)).answer is Answer.PASS
