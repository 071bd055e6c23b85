"""Autoscalers that may remove a node while it changes (Z17), as far as they left a mark on it."""

from collections.abc import Iterator

from gpu.external_controllers import AUTOSCALER, KARPENTER, is_karpenters
from gpu.labels import AUTOSCALER_GOING, KARPENTER_GOING
from rollouts.checks import Check, each, listed
from rollouts.preflight.facts import PreflightFacts
from wording.lists import one_or_count
from wording.reports import fit

GOING = (*KARPENTER_GOING, *AUTOSCALER_GOING)


def may_take_nodes(facts: PreflightFacts) -> Iterator[Check]:
    going = [node for node in facts.nodes if any(key in GOING for key in node.taints)]
    if going:
        yield Check(
            "autoscaler-takes",
            title=fit("An autoscaler is removing {}", one_or_count([node.name for node in going], "node")),
            summary="A node that is removed during its change counts as failed.",
            evidence=each((node.name, ", ".join(key for key in node.taints if key in GOING)) for node in going),
            steps=(
                "Leave these nodes out, or wait.",
                f"At the release Quarterdeck sets {AUTOSCALER.mark}, or {KARPENTER.mark}. That may be too late.",
            ),
            is_grave=True,
        )
    its = [node for node in facts.nodes if is_karpenters(node.labels)]
    free = [node for node in its if node.annotations.get(KARPENTER.name) != KARPENTER.value]
    if free:
        yield Check(
            "karpenter",
            title=fit("Karpenter may replace {} during the plan", one_or_count([node.name for node in free], "node")),
            summary=f"Quarterdeck sets {KARPENTER.mark} at each release and removes it before the soak.",
            evidence=listed("Nodes", (node.name for node in free)),
            steps=("Nothing to do. Consolidation and drift stop; expiry does not. A new node gets the new driver.",),
        )
