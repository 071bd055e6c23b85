"""A sequential test for gates that compare changed nodes with others, or with their past, again and again. Pure.

Each comparison is a trial: it went against the changed nodes or it did not. Without an effect of the change, a trial
goes against them with a known chance at most. The test multiplies likelihood ratios, averaged over several effects and
over the trial at which the effect began. Their product is an e-value: however often it is read, it exceeds 1/α with a
chance of at most α (Ville's inequality), if the change has no effect. So a gate may look at every round.

Source: Shin, Ramdas and Rinaldo, E-detectors, arXiv 2203.03532.
"""

from collections.abc import Iterable
from typing import NamedTuple

ALPHA = 0.05  # the chance that a comparison ever halts a stage which the change has not harmed
EFFECTS = (2.0, 10.0, 100.0)  # by how much the odds of a trial grow


class ComparedTrial(NamedTuple):
    is_against: bool  # the result is worse for the changed nodes
    chance: float  # of that at most, if the change has no effect


def e_value(trials: Iterable[ComparedTrial]) -> float:
    """Returns the evidence that the change has an effect: 1 is none, and 1/α proves it."""
    begun, number = dict.fromkeys(EFFECTS, 0.0), 0
    for number, (is_against, chance) in enumerate(trials, 1):
        weight = 1 / (number * (number + 1))  # of an effect that begins at this trial
        for effect in EFFECTS:
            ratio = (effect if is_against else 1) / (effect * chance + 1 - chance)
            begun[effect] = (begun[effect] + weight) * ratio
    return sum(begun.values()) / len(EFFECTS) + 1 / (number + 1)  # effects that have not begun yet: ratio 1


def is_proved(trials: Iterable[ComparedTrial], *, tests: int = 1) -> bool:
    """Returns whether an effect is proved. `tests` is the number of tests of the same gate, which share α."""
    return e_value(trials) >= tests / ALPHA


def trials_until_proof(
    trials: Iterable[ComparedTrial], further: Iterable[ComparedTrial], *, tests: int = 1
) -> int | None:
    """Returns how many of the further trials prove an effect; None: all of them prove none."""
    known, number = list(trials), 0
    left = iter(further)
    while not is_proved(known, tests=tests):
        if (trial := next(left, None)) is None:
            return None
        known.append(trial)
        number += 1
    return number
