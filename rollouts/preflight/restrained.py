"""What holds nodes back now beside the plan: freezes, and windows that are closed."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from rollouts.checks import Check
from rollouts.models import Plan
from rollouts.preflight.picks import Picks
from rollouts.restraints import restraints_of
from wording.numbers import count, either


def restrained(plan: Plan, picks: Picks, *, now: datetime) -> Iterator[Check]:
    bound = restraints_of(plan, now=now).of_nodes([node.uid for node in picks.nodes])
    for sentence, number in Counter(one.sentence for one in bound.values()).items():
        waits = f"{count(number, 'node')} {either(number, 'waits', 'wait')} for it"
        yield Check("restrained", sentence, f"{waits}; the plan may be started all the same.")
