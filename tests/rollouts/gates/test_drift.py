import random
from collections.abc import Sequence
from datetime import timedelta

import pytest

from rollouts.gates.base import Answer, GateResult, HoursEvidence, MeasuredHour
from rollouts.gates.drift import BUSY_FROM, FEWEST_PAST, HOUR, Drift
from rollouts.gates.options import BadGate, read_gates
from rollouts.gates.sequential_test import ALPHA
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_baseline, a_target, evidence, values_of

RELEASED, CHANGED = NOON - timedelta(hours=5), NOON - timedelta(hours=4)
Values = Sequence[float]


def hours(
    before: Values, after: Values, *, key: str = "temperature", load: float | None = 0.8
) -> tuple[MeasuredHour, ...]:
    begins = [RELEASED - HOUR * number for number in range(len(before), 0, -1)]
    begins += [CHANGED + HOUR * number for number in range(len(after))]
    return tuple(MeasuredHour(at, load, {key: value}) for at, value in zip(begins, (*before, *after), strict=True))


def answer(
    *changed: tuple[MeasuredHour, ...], peers: Sequence[tuple[MeasuredHour, ...]] = (), gate: Drift | None = None
) -> GateResult:
    targets = [
        a_target(f"node-{number}", state_since=CHANGED, baseline=a_baseline(at=RELEASED))
        for number in range(len(changed))
    ]
    its = HoursEvidence(
        {target.name: one for target, one in zip(targets, changed, strict=True)},
        {f"peer-{number}": one for number, one in enumerate(peers)},
    )
    return (gate or Drift()).evaluate(evidence(*targets, hours=its), now=NOON)


CALM, HOTTER = hours([60, 61, 60], [61, 60]), hours([60, 61, 60], [68, 69])


def test_passes_where_each_node_is_as_before_and_names_what_is_not_measured():
    result = answer(CALM, CALM)

    assert (result.answer, result.title) == (Answer.PASS, "No drift of 10 % on 2 changed nodes")
    shown = values_of(result)
    assert (shown["Measured"], shown["Nodes compared with their past (n)"]) == ("Temperature", 2)
    assert "Corrected ECC errors" in shown["Not measured"]


def test_a_drift_on_all_changed_nodes_and_no_unchanged_one_fails():
    result = answer(*[HOTTER] * 12, peers=[CALM] * 40)

    assert (result.answer, result.cause) == (Answer.FAIL, "Temperature")
    assert result.title == "Temperature drifts on 12 nodes"
    assert values_of(result)["node-0: Temperature"] == "69 °C, 60 before"


@pytest.mark.parametrize(("changed", "peers"), [(1, 0), (3, 40), (12, 3)])
def test_a_drift_on_too_few_nodes_is_no_proof_and_waits(changed: int, peers: int):
    result = answer(*[HOTTER] * changed, peers=[CALM] * peers)

    assert (result.answer, result.cause) == (Answer.WAIT, "unproved")
    assert result.title.endswith("too few nodes to prove")


def test_what_unchanged_nodes_do_as_often_is_no_effect():
    assert answer(*[HOTTER] * 4, peers=[HOTTER] * 8).answer is Answer.PASS


@pytest.mark.parametrize(
    "one",
    [
        hours([60, 61], [61, 60]),
        hours([60, 61, 60], [61]),
        hours([60, 61, 60], [61, 60], load=None),
        hours([60, 61, 60], [61, 60], load=BUSY_FROM / 2),
        hours([60, 61, 60], []) + hours([], [70, 70], load=0.2),
    ],
    ids=["short-past", "one-hour", "unknown-load", "idle", "other-load"],
)
def test_too_few_comparable_hours_are_never_a_pass(one: tuple[MeasuredHour, ...]):
    result = answer(CALM, one)

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "few-hours", ("node-1",))


def judged(*names: str, left_out: frozenset[str] = frozenset(), **given) -> GateResult:
    """Three changed nodes, and hours of these."""
    targets = [a_target(name, state_since=CHANGED, baseline=a_baseline(at=RELEASED)) for name in ("a", "b")]
    targets.append(a_target("c", state_since=CHANGED, **{"baseline": a_baseline(at=RELEASED)} | given))
    its = HoursEvidence(dict.fromkeys(names, CALM), left_out=left_out)
    return Drift().evaluate(evidence(*targets, hours=its), now=NOON)


def test_a_changed_node_that_is_not_compared_is_never_a_pass():
    without_hours, without_baseline = judged("a", "b"), judged("a", "b", baseline=None)

    assert (without_hours.answer, without_hours.nodes) == (Answer.WAIT, ("c",))
    assert (without_baseline.cause, without_baseline.nodes) == ("unknown-before", ("c",))


def test_a_pass_of_some_nodes_of_a_large_stage_states_how_many():
    result = judged("a", "b", left_out=frozenset({"c"}))

    assert result.title == "No drift of 10 % on 2 of 3 changed nodes"
    assert result.summary == "The first 2 nodes of the stage were compared with their own hours before the change."


def test_without_hours_it_waits_and_names_the_remedy():
    nothing = Drift().evaluate(evidence(a_target(), hours=None), now=NOON)

    assert answer(()).cause == nothing.cause == "no-hours"


@pytest.mark.parametrize(
    ("key", "before", "after", "drifts"),
    [
        ("ecc_corrected", [0, 0, 0], [2, 2], True),
        ("ecc_corrected", [0, 0, 0], [0, 2], False),  # one hour
        ("ecc_corrected", [0, 5, 0], [4, 4], False),  # as in the past
        ("throttled", [0, 0, 0], [0.01, 0.01], False),  # below the smallest effect
        ("throttled", [0, 0, 0], [0.2, 0.2], True),
        ("nvlink_errors", [100, 100, 100], [105, 105], False),
        ("nvlink_errors", [100, 100, 100], [115, 115], True),
        ("tensor", [0.5, 0.5, 0.5], [0.4, 0.4], True),
        ("tensor", [0.5, 0.5, 0.5], [0.6, 0.6], False),
        ("power_watts", [500, 500, 500], [430, 430], True),
    ],
)
def test_each_measure_has_a_direction_and_a_smallest_effect(key: str, before: Values, after: Values, drifts: bool):
    assert (answer(hours(before, after, key=key)).answer is Answer.WAIT) is drifts


def test_options_have_bounds():
    for wrong in ({"worse_percent": 0}, {"hours": 0}, {"hours": 25}):
        with pytest.raises(BadGate):
            read_gates({"drift": wrong})


def walk(dice: random.Random, *, shift: float = 0) -> tuple[MeasuredHour, ...]:
    """Hours of a node whose temperature wanders, as loads and rooms do; `shift` comes with the change."""
    at, seen = dice.uniform(45, 75), list[float]()
    for _ in range(20):
        at += dice.gauss(0, 2)
        seen.append(at)
    return hours(seen[:12], [value + shift for value in seen[12:]])


def halts(dice: random.Random, *, shift: float = 0) -> bool:
    changed, peers = [walk(dice, shift=shift) for _ in range(8)], [walk(dice) for _ in range(24)]
    looks = [[one[:last] for one in changed] for last in (14, 17, 20)]
    seen = ([one[:last] for one in peers] for last in (14, 17, 20))
    return any(answer(*here, peers=there).answer is Answer.FAIL for here, there in zip(looks, seen, strict=True))


def test_without_an_effect_it_halts_at_most_as_often_as_promised_however_the_nodes_wander():
    dice = random.Random(7)

    assert sum(halts(dice) for _ in range(200)) <= ALPHA * 200


def test_a_shift_below_every_limit_of_a_rule_is_found():
    dice = random.Random(7)

    assert sum(halts(dice, shift=14) for _ in range(40)) >= 36


def test_nodes_that_have_not_changed_are_waited_for():
    targets = (a_target(state_since=CHANGED, baseline=a_baseline(at=RELEASED)), a_target("b", state=TargetState.HELD))

    assert Drift().evaluate(evidence(*targets, hours=HoursEvidence({"node-1": CALM})), now=NOON).cause == "to-come"
    assert FEWEST_PAST == 3
