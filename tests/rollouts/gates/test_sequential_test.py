"""The gates look again and again: without an effect they halt at most as often as they promise."""

import random

import pytest

from rollouts.gates.sequential_test import ALPHA, ComparedTrial, e_value, is_proved, trials_until_proof
from rollouts.gates.slo import WORSE_BY_CHANCE

RUNS, LOOKS = 1000, 100


def halts(trials: list[ComparedTrial]) -> bool:
    return any(is_proved(trials[:looks]) for looks in range(1, len(trials) + 1))


def windows(dice: random.Random, rate: float) -> list[ComparedTrial]:
    return [ComparedTrial(dice.random() < rate, WORSE_BY_CHANCE) for _ in range(LOOKS)]


def first_findings(dice: random.Random, changed: int, peers: int, odds: float) -> list[ComparedTrial]:
    """Up to ten nodes get a finding, one after the other; a changed node is `odds` times as likely to be the next."""
    trials, left = [], {True: changed, False: peers}
    for _ in range(min(10, changed + peers)):
        weights = {True: left[True] * odds, False: left[False]}
        is_here = dice.random() < weights[True] / sum(weights.values())
        trials.append(ComparedTrial(is_here, left[True] / sum(left.values())))
        left[is_here] -= 1
    return trials


@pytest.mark.nightly
def test_without_an_effect_a_hundred_looks_halt_at_most_as_often_as_promised():
    dice = random.Random(7)

    halted = sum(halts(windows(dice, WORSE_BY_CHANCE)) for _ in range(RUNS))

    assert halted <= ALPHA * RUNS


@pytest.mark.parametrize(("changed", "peers"), [(4, 4), (5, 45), (20, 180)])
def test_findings_that_come_anywhere_halt_at_most_as_often_as_promised(changed: int, peers: int):
    dice = random.Random(f"{changed} {peers}")

    halted = sum(halts(first_findings(dice, changed, peers, odds=1)) for _ in range(RUNS))

    assert halted <= ALPHA * RUNS


def test_under_an_effect_it_stops():
    dice = random.Random(7)

    assert sum(halts(windows(dice, 0.9)) for _ in range(100)) == 100
    assert sum(halts(first_findings(dice, 20, 180, odds=50)) for _ in range(100)) >= 95


@pytest.mark.parametrize(("good", "worse"), [(0, 2), (6, 4), (48, 6)])
def test_an_effect_that_begins_late_is_proved_by_few_trials(good: int, worse: int):
    before = [ComparedTrial(is_against=False, chance=WORSE_BY_CHANCE)] * good
    against = [ComparedTrial(is_against=True, chance=WORSE_BY_CHANCE)] * 20

    assert trials_until_proof(before, against) == worse
    assert trials_until_proof(before, against[: worse - 1]) is None


def test_no_trial_is_no_evidence():
    assert e_value([]) == 1
    assert e_value([ComparedTrial(is_against=True, chance=1)]) == 1  # there is no other node
