from typing import Any

import pytest

from gpu.compatibility.verdicts import Support
from rollouts.gates.base import Answer, Combination, GateResult
from rollouts.gates.compatibility import Compatibility
from tests.make import NOON
from tests.rollouts.make import NEW, a_held_target, evidence, values_of

GOOD = Combination(Support.SUPPORTED, "R580 is maintained until June 2028.", 2)
OLD_SOON = Combination(Support.DEPRECATED, "R580 is maintained until next month.", 2)
UNKNOWN = Combination(Support.UNKNOWN, "NVIDIA does not list it.", 2)
BAD = Combination(Support.KNOWN_BAD, "It does not work with V100.", 1)
UNSUPPORTED = Combination(Support.UNSUPPORTED, "R570 reached its end of life.", 2)
DESPITE = "ada started it despite this: NVIDIA told us to."
TWO = (a_held_target("a"), a_held_target("b"))


def evaluated(
    *lines: Combination, targets=TWO, compared: int = 2, allow_unknown: bool = False, **given: Any
) -> GateResult:
    shown = evidence(*targets, combinations=lines, compared=compared, **given)
    return Compatibility(allow_unknown=allow_unknown).evaluate(shown, now=NOON)


@pytest.mark.parametrize("line", [GOOD, OLD_SOON])
def test_passes_what_is_supported_on_every_node(line: Combination):
    result = evaluated(line)

    assert result.answer is Answer.PASS
    assert result.title == f"Driver {NEW} is supported"
    assert values_of(result)["Compared nodes"] == 2


@pytest.mark.parametrize(
    ("line", "where"), [(BAD, "known bad on 1 of 2 nodes"), (UNSUPPORTED, "unsupported on 2 nodes")]
)
def test_what_is_known_to_fail_or_unsupported_fails_and_says_on_how_many(line: Combination, where: str):
    result = evaluated(line, GOOD)

    assert (result.answer, result.title) == (Answer.FAIL, f"Driver {NEW} is {where}")
    assert result.summary == line.sentence


def test_unknown_waits_for_good_unless_it_is_allowed():
    waits, allowed = evaluated(UNKNOWN, GOOD), evaluated(UNKNOWN, GOOD, allow_unknown=True)

    assert (waits.answer, waits.is_final) == (Answer.WAIT, True)
    assert allowed.answer is Answer.PASS
    assert values_of(allowed)["Unknown"] == f"{UNKNOWN.sentence} (2 nodes)"


def test_that_unknown_is_allowed_allows_nothing_bad():
    assert evaluated(BAD, UNKNOWN, allow_unknown=True).answer is Answer.FAIL


@pytest.mark.parametrize("line", [BAD, UNSUPPORTED, UNKNOWN])
def test_what_was_overridden_at_the_start_is_said_and_not_held_against_it(line: Combination):
    result = evaluated(line, despite=DESPITE)

    assert result.answer is Answer.PASS
    assert result.summary == DESPITE
    assert f"{line.sentence} ({line.nodes} node" in str(values_of(result))


@pytest.mark.parametrize(
    "given",
    [
        {"targets": (), "compared": 0},
        {"targets": (a_held_target("a", is_seen=False),)},
        {"compared": 1},
        {"lines": ()},
    ],
    ids=["no target", "unseen", "one not compared", "nothing said"],
)
def test_what_was_not_compared_is_never_supported(given: dict[str, Any]):
    lines = given.pop("lines", (GOOD,))

    assert evaluated(*lines, allow_unknown=True, **given).answer is Answer.WAIT
