"""NVSentinel, which takes a driver replacement for a fault (Z18).

While the driver is away DCGM does not answer. NVSentinel then cordons the node, which counts in the operator's
maxUnavailable and may open its breaker (NVIDIA/NVSentinel, docs/runbooks/driver-upgrades.md).
"""

from collections.abc import Iterator

from gpu.external_controllers import NVSENTINEL, is_watched
from gpu.labels import SENTINEL_MANAGED, SENTINEL_WATCHES
from rollouts.checks import Check, listed
from rollouts.preflight.facts import NodeToChange, PreflightFacts
from wording.lists import one_or_count
from wording.reports import fit


def is_watching(facts: PreflightFacts) -> Iterator[Check]:
    left = [node for node in facts.nodes if _is_left(node)]
    watched = [node for node in facts.nodes if not _is_left(node) and is_watched(node.labels)]
    if watched:
        yield Check(
            "nvsentinel",
            title=fit("NVSentinel watches {}", one_or_count([node.name for node in watched], "node")),
            summary="It takes a driver replacement for a fault and cordons the node.",
            evidence=listed("Nodes", (node.name for node in watched)),
            steps=(
                f"Nothing to do: Quarterdeck sets {NVSENTINEL.mark} at each release and restores it before the soak.",
            ),
        )
    if left:
        yield Check(
            "nvsentinel-off",
            title=fit("NVSentinel ignores {}", one_or_count([node.name for node in left], "node")),
            summary=f"The label {SENTINEL_MANAGED} or {SENTINEL_WATCHES} is false. It reports no fault there.",
            evidence=listed("Nodes", (node.name for node in left)),
            steps=("Remove the label after the change, before the soak ends. Quarterdeck does not change it.",),
        )


def _is_left(node: NodeToChange) -> bool:
    return NVSENTINEL.value in (node.labels.get(SENTINEL_MANAGED), node.labels.get(SENTINEL_WATCHES))
