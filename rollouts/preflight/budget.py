"""A budget that is used up before the plan starts: it counts what is broken already, by whomever."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.subject import PreflightSubject
from wording.lists import names
from wording.numbers import are


def is_used_up(subject: PreflightSubject) -> Iterator[Check]:
    broken = tuple(sorted(node.name for node in subject.nodes if node.is_unschedulable or node.is_ready is not True))
    for stage in subject.stages:
        if len(broken) >= stage.max_unavailable:
            used = f"{names(broken)} already {are(len(broken))}"
            sentence = f"{stage.name} may have {stage.max_unavailable} unavailable, and {used}."
            yield Check("budget", sentence, "Nothing goes until they are back, or the stage is allowed more.")
