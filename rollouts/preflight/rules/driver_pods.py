"""Driver DaemonSets that lack a pod; the upgrade controller does nothing anywhere until they have it.

k8s-operator-libs, pkg/upgrade/upgrade_state.go (BuildState): "driver DaemonSet should not have Unscheduled pods".
"""

from collections.abc import Iterator

from rollouts.checks import Check, each
from rollouts.preflight.facts import PreflightFacts
from wording.numbers import count, either

STEPS = ("Check why the pods are not created or find no node, for example a taint or a missing node.",)


def are_missing(facts: PreflightFacts) -> Iterator[Check]:
    short = [one for one in facts.driver_daemonsets if one.wanted != one.pods or one.without_node]
    if short:
        items = [(one.name, f"wants {one.wanted} pods, has {one.pods}") for one in short if one.wanted != one.pods]
        items += [(pod, "no node") for one in short for pod in one.without_node]
        title = f"{count(len(short), 'driver DaemonSet')} {either(len(short), 'lacks', 'lack')} pods"
        summary = "Until then the operator's upgrade controller changes no node."
        yield Check("driver-pods", title=title, summary=summary, evidence=each(items), steps=STEPS, is_grave=True)
