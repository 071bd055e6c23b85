"""NVSentinel, which takes a driver replacement for a fault (Z18).

While the driver is away DCGM does not answer. NVSentinel then cordons the node, which counts in the operator's
maxUnavailable and may open its breaker (NVIDIA/NVSentinel, docs/runbooks/driver-upgrades.md).
"""

from collections.abc import Iterator

from gpu.external_controllers import NVSENTINEL, is_watched
from gpu.labels import SENTINEL_MANAGED
from rollouts.checks import Check, each
from rollouts.preflight.facts import NodeToChange, PreflightFacts
from wording.lists import names
from wording.numbers import either


def is_watching(facts: PreflightFacts) -> Iterator[Check]:
    left = [node for node in facts.nodes if _is_left(node)]
    watched = [node for node in facts.nodes if not _is_left(node) and is_watched(node.labels)]
    if watched:
        those = names(sorted(node.name for node in watched))
        cordons = f"cordons the {either(len(watched), 'node', 'nodes')}"
        fix = (
            f"Nothing to do: {NVSENTINEL.mark} is set on each at its release, and what was there is put back before "
            "its stage soaks, so that it looks on while gates judge."
        )
        about = each(node.name for node in watched)
        sentence = f"NVSentinel watches {those}: it takes a driver that is replaced for a fault, and {cordons}."
        yield Check("nvsentinel", sentence, fix, about=about)
    if left:
        those = names(sorted(node.name for node in left))
        sentence = f"NVSentinel leaves {those} alone, as {SENTINEL_MANAGED} is false: it sees no fault there either."
        fix = "That label is not ours, and stays. Take it off once they are changed, before the soak is over."
        yield Check("nvsentinel-off", sentence, fix, about=each(node.name for node in left))


def _is_left(node: NodeToChange) -> bool:
    return node.labels.get(SENTINEL_MANAGED) == NVSENTINEL.value
