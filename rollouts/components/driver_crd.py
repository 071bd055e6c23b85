"""The driver of the nodes that an NVIDIADriver selects (GPU Operator, NVIDIADriver mode). Pure.

From operator 26.7 on the object has its own throttle. Earlier operators use the ClusterPolicy's, counted over all
nodes.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rollouts.checks import Check
from rollouts.components.driver import NOT_OF_THE_TEMPLATE, Driver, DriverFacts


class DriverCrd(Driver):
    kind: ClassVar[str] = "NVIDIADriver"
    path: ClassVar[tuple[str, ...]] = ("spec", "version")

    def template(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in spec.items() if name not in NOT_OF_THE_TEMPLATE}

    def _mode(self, facts: DriverFacts) -> Iterator[Check]:
        if not facts.has_policy:
            yield Check(
                "no-policy",
                title="No ClusterPolicy is visible",
                summary="Without a ClusterPolicy there is no upgrade controller.",
                steps=("Create a ClusterPolicy, as the operator's chart does, or let Quarterdeck read it.",),
            )
        elif not facts.policy_uses_crd:
            steps = ("Set spec.driver.useNvidiaDriverCRD in the ClusterPolicy.",)
            yield Check("crd-off", title="The ClusterPolicy does not use NVIDIADriver objects", steps=steps)
