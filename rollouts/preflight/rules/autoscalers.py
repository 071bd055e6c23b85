"""Autoscalers that may take a node away while it changes (hazard Z17): those that left a mark on it.

One that has left none is not seen: rows hold what nodes say of themselves.
"""

from collections.abc import Iterable, Iterator

from gpu.labels import AUTOSCALER_GOING, AUTOSCALER_LEAVE, KARPENTER_GOING, KARPENTER_LEAVE, KARPENTER_POOL
from rollouts.checks import Check, each
from rollouts.preflight.facts import NodeToChange, PreflightFacts
from wording.lists import names
from wording.numbers import are, either

GOING = (*KARPENTER_GOING, *AUTOSCALER_GOING)


def may_take_nodes(facts: PreflightFacts) -> Iterator[Check]:
    going = [node for node in facts.nodes if any(key in GOING for key in node.taints)]
    if going:
        marked = f"{_names(going)} {are(len(going))} marked by an autoscaler to be taken away"
        leave = either(len(going), "it", "them")
        about = each(f"{node.name}: {', '.join(key for key in node.taints if key in GOING)}" for node in going)
        fix = (
            f"Leave {leave} out, or wait: a node that goes in the middle of its change counts as failed. The Cluster "
            f"Autoscaler leaves a node that is annotated with {AUTOSCALER_LEAVE}=true."
        )
        yield Check("autoscaler-takes", f"{marked}.", fix, is_grave=True, about=about)
    free = [node for node in facts.nodes if _is_karpenters(node) and node.annotations.get(KARPENTER_LEAVE) != "true"]
    if free:
        sentence = f"Karpenter made {_names(free)}, and may replace {either(len(free), 'it', 'them')} during the plan."
        fix = (
            f"Annotate {either(len(free), 'it', 'them')} with {KARPENTER_LEAVE}=true until the plan is over, then take "
            "that off again: it stops consolidation and drift, but no expiry. What replaces a node gets the new driver."
        )
        yield Check("karpenter", sentence, fix, about=each(node.name for node in free))


def _is_karpenters(node: NodeToChange) -> bool:
    return any(key in node.labels for key in KARPENTER_POOL)


def _names(nodes: Iterable[NodeToChange]) -> str:
    return names(sorted(node.name for node in nodes))
