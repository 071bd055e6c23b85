"""A budget that is used up before the plan starts: it counts what is broken already, by whomever."""

from collections.abc import Iterable, Iterator, Sequence

from fleet.models import Node
from rollouts.checks import Check
from rollouts.models import Stage
from wording.lists import names
from wording.numbers import are


def budget_warnings(stages: Iterable[Stage], nodes: Sequence[Node]) -> Iterator[Check]:
    broken = tuple(sorted(node.name for node in nodes if node.is_unschedulable or node.is_ready is not True))
    for stage in stages:
        if len(broken) >= stage.max_unavailable:
            used = f"{names(broken)} already {are(len(broken))}"
            sentence = f"{stage.name} may have {stage.max_unavailable} unavailable, and {used}."
            yield Check("budget", sentence, "Nothing goes until they are back, or the stage is allowed more.")
