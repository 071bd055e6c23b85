"""Freezes and closed windows that restrain nodes now."""

from collections import Counter
from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.restraints import restraints_of
from wording.numbers import count, either


def restrained(subject: PreflightSubject) -> Iterator[Check]:
    bound = restraints_of(subject.plan, now=subject.now).of_nodes([node.uid for node in subject.picks.nodes])
    for sentence, number in Counter(one.sentence for one in bound.values()).items():
        waits = f"{count(number, 'node')} {either(number, 'waits', 'wait')} for it"
        yield Check("restrained", sentence, f"{waits}; the plan may be started all the same.")
