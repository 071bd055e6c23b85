"""The GPU Operator does not run, so a written change would have no effect."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.facts import PreflightFacts

STEPS = ("Describe its Deployment and read the last log of its pod.", "If it was scaled to 0, scale it to 1.")


def is_down(facts: PreflightFacts) -> Iterator[Check]:
    """Yields a blocker: nothing would change, and a later repair of the operator would start the whole change."""
    if facts.operator_down:
        yield Check("operator-down", title="The GPU Operator is down", summary=facts.operator_down, steps=STEPS)


def is_unseen(facts: PreflightFacts) -> Iterator[Check]:
    if facts.operator_unseen:
        steps = ("Check its Deployment, or let Quarterdeck read deployments.",)
        title = "The state of the GPU Operator is unknown"
        yield Check("operator-unseen", title=title, summary=facts.operator_unseen, steps=steps)
