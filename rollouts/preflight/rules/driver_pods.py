"""Driver DaemonSets that lack a pod; the upgrade controller does nothing anywhere until they have it.

k8s-operator-libs, pkg/upgrade/upgrade_state.go (BuildState): "driver DaemonSet should not have Unscheduled pods".
"""

from collections.abc import Iterator

from rollouts.checks import Check, each
from rollouts.preflight.facts import PreflightFacts
from wording.lists import names
from wording.numbers import either

FIX = "Look why they are not made or find no node: a taint that they do not tolerate, a node that is gone."


def are_missing(facts: PreflightFacts) -> Iterator[Check]:
    short = [one for one in facts.driver_daemonsets if one.wanted != one.pods or one.without_node]
    if short:
        number = len(short)
        those = f"{either(number, 'Driver DaemonSet', 'Driver DaemonSets')} {names([one.name for one in short])}"
        has = either(number, "does not have the pods that it wants", "do not have the pods that they want")
        sentence = f"{those} {has}: while that is so, the operator's upgrade controller changes no node at all."
        about = [f"{one.name} wants {one.wanted} and has {one.pods}" for one in short if one.wanted != one.pods]
        about += [f"without a node: {pod}" for one in short for pod in one.without_node]
        yield Check("driver-pods", sentence, FIX, is_grave=True, about=each(about))
