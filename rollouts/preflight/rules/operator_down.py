"""The GPU Operator does not run, so a written change would have no effect."""

from collections.abc import Iterator

from rollouts.checks import Check
from rollouts.preflight.facts import PreflightFacts

FIX = "Describe its Deployment and read its pod's last log; where it was scaled to 0, scale it to 1 again."


def is_down(facts: PreflightFacts) -> Iterator[Check]:
    """Yields a blocker: nothing would change, and a later repair of the operator would start the whole change."""
    if facts.operator_down:
        yield Check("operator-down", facts.operator_down, FIX)


def is_unseen(facts: PreflightFacts) -> Iterator[Check]:
    if facts.operator_unseen:
        sentence = f"Whether the GPU operator runs is not known. {facts.operator_unseen}"
        yield Check(
            "operator-unseen", sentence, "Look at its Deployment yourself, or let Quarterdeck read deployments."
        )
