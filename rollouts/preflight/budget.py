"""Budgets that are used up before the plan starts, by any unavailable node."""

from collections import Counter
from collections.abc import Iterator

from gpu.upgrade_controller import unavailable_of
from rollouts.checks import Check, stage_field
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import are, count, either


def is_used_up(subject: PreflightSubject) -> Iterator[Check]:
    broken = tuple(sorted(node.name for node in subject.nodes if node.is_unschedulable or node.is_ready is not True))
    for stage in subject.stages:
        if len(broken) >= stage.max_unavailable:
            used = f"{names(broken)} already {are(len(broken))}"
            sentence = f"{stage.name} may have {stage.max_unavailable} unavailable, and {used}."
            fix = "Nothing goes until they are back, or the stage is allowed more."
            yield Check("budget", sentence, fix, field=stage_field(stage.index, "max_unavailable"))
    allowed = unavailable_of(subject.driver.upgrade_policy, len(subject.nodes))
    if allowed and len(broken) >= allowed:
        used = f"{names(broken)} already {are(len(broken))}"
        sentence = f"The operator lets {count(allowed, 'node')} of the object be unavailable, and {used}."
        yield Check("budget", sentence, "Nothing goes until they are back, or maxUnavailable of its policy is more.")


def domains_are_full(subject: PreflightSubject) -> Iterator[Check]:
    """Yields warnings for failure domains without a free place in the ledger."""
    waiting = subject.budgets.waiting([node.name for node in subject.picks.nodes])
    for sentence, number in Counter(waiting.values()).items():
        waits = f"{count(number, 'node')} {either(number, 'waits', 'wait')} for it"
        yield Check("domain", sentence, f"{waits}; the plan may be started all the same.")
