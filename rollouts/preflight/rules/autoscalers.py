"""Autoscalers that may remove a node while it changes (Z17), as far as they left a mark on it."""

from collections.abc import Iterable, Iterator

from gpu.external_controllers import AUTOSCALER, KARPENTER, is_karpenters
from gpu.labels import AUTOSCALER_GOING, KARPENTER_GOING
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
            f"Leave {leave} out, or wait: a node that goes in the middle of its change counts as failed. As each is "
            f"let go {AUTOSCALER.mark} is set on it, or {KARPENTER.mark} where Karpenter made it; that may be too late."
        )
        yield Check("autoscaler-takes", f"{marked}.", fix, is_grave=True, about=about)
    its = [node for node in facts.nodes if is_karpenters(node.labels)]
    free = [node for node in its if node.annotations.get(KARPENTER.name) != KARPENTER.value]
    if free:
        sentence = f"Karpenter made {_names(free)}, and may replace {either(len(free), 'it', 'them')} during the plan."
        fix = (
            f"Nothing to do: {KARPENTER.mark} is set on each at its release, and put back before its stage soaks. It "
            "stops consolidation and drift, but no expiry. What replaces a node gets the new driver."
        )
        yield Check("karpenter", sentence, fix, about=each(node.name for node in free))


def _names(nodes: Iterable[NodeToChange]) -> str:
    return names(sorted(node.name for node in nodes))
