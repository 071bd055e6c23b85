"""Nodes that are not Ready before the plan begins."""

from collections.abc import Iterator

from rollouts.checks import Check, each
from rollouts.preflight.facts import PreflightFacts
from wording.lists import one_or_count
from wording.numbers import are
from wording.reports import fit

STEPS = ("Repair the nodes, or leave them out.",)


def are_not_ready(facts: PreflightFacts) -> Iterator[Check]:
    nodes = [node for node in facts.nodes if node.is_ready is not True]
    if nodes:
        title = fit("{} {} not Ready", one_or_count([node.name for node in nodes], "node"), are(len(nodes)))
        items = each((node.name, node.reason or "its kubelet is silent") for node in nodes)
        summary = "Gates cannot tell whether the new driver broke such a node."
        yield Check("node-not-ready", title=title, summary=summary, evidence=items, steps=STEPS, is_grave=True)
