"""NVSentinel, which takes a driver that is replaced for a fault (hazard Z18).

While the driver is away DCGM does not answer; NVSentinel then cordons the node, which counts in the operator's
maxUnavailable and may trip its breaker (NVIDIA/NVSentinel, docs/runbooks/driver-upgrades.md).
"""

from collections.abc import Iterator

from gpu.labels import SENTINEL_MANAGED, SENTINEL_MARKS
from rollouts.checks import Check, each
from rollouts.preflight.facts import NodeToChange, PreflightFacts
from wording.lists import names
from wording.numbers import either


def is_watching(facts: PreflightFacts) -> Iterator[Check]:
    left = [node for node in facts.nodes if _is_left(node)]
    watched = [node for node in facts.nodes if not _is_left(node) and _is_marked(node)]
    if watched:
        those = names(sorted(node.name for node in watched))
        cordons = f"cordons the {either(len(watched), 'node', 'nodes')}"
        fix = (
            f"Label {either(len(watched), 'it', 'them')} {SENTINEL_MANAGED}=false before the start, and take the label "
            "off before the soak is over: gates do not see what it sees."
        )
        about = each(node.name for node in watched)
        sentence = f"NVSentinel watches {those}: it takes a driver that is replaced for a fault, and {cordons}."
        yield Check("nvsentinel", sentence, fix, is_grave=True, about=about)
    if left:
        those = names(sorted(node.name for node in left))
        sentence = f"NVSentinel leaves {those} alone, as {SENTINEL_MANAGED} is false: it sees no fault there either."
        fix = "Take the label off once they are changed, before the soak is over."
        yield Check("nvsentinel-off", sentence, fix, about=each(node.name for node in left))


def _is_left(node: NodeToChange) -> bool:
    return node.labels.get(SENTINEL_MANAGED) == "false"


def _is_marked(node: NodeToChange) -> bool:
    return any(key.startswith(SENTINEL_MARKS) for key in node.labels)
