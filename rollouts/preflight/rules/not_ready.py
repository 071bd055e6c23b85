"""Nodes that are not Ready before the plan begins."""

from collections.abc import Iterator

from rollouts.checks import Check, each
from rollouts.preflight.facts import PreflightFacts
from wording.lists import names
from wording.numbers import are, either

FIX = "Mend them or leave them out: a change heals no node, and gates cannot tell it from one that the driver broke."


def are_not_ready(facts: PreflightFacts) -> Iterator[Check]:
    nodes = [node for node in facts.nodes if node.is_ready is not True]
    if nodes:
        take = f"and {either(len(nodes), 'is', 'are')} to change"
        sentence = f"{names(sorted(node.name for node in nodes))} {are(len(nodes))} not Ready, {take} in this plan."
        about = (f"{node.name}: {node.reason or 'its kubelet is silent'}" for node in nodes)
        yield Check("node-not-ready", sentence, FIX, is_grave=True, about=each(about))
