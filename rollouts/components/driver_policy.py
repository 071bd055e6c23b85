"""The driver of every node, as the ClusterPolicy names its one version. Pure.

A ClusterPolicy has no node selector for its driver. Every GPU node of the cluster is held before the version is
written, and nodes outside of the plan stay held (Z1; gpu-operator api/nvidia/v1/clusterpolicy_types.go).
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rollouts.checks import Check
from rollouts.components.driver import NOT_OF_THE_TEMPLATE, Driver, DriverFacts

DRIVER = "driver"
# Said beside the driver, and in its pods' template: tolerations and labels, and the containers of GDS and GDRCopy.
BESIDE_IT = ("daemonsets", "gds", "gdrcopy")


class DriverPolicy(Driver):
    kind: ClassVar[str] = "ClusterPolicy"
    path: ClassVar[tuple[str, ...]] = ("spec", DRIVER, "version")

    def template(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the relevant parts by their path in the spec, such as `driver.env`."""
        given = spec.get(DRIVER) or {}
        own = {f"{DRIVER}.{name}": value for name, value in given.items() if name not in NOT_OF_THE_TEMPLATE}
        return own | {name: spec[name] for name in BESIDE_IT if name in spec}

    def _mode(self, facts: DriverFacts) -> Iterator[Check]:
        if facts.policy_uses_crd:
            yield Check(
                "crd-on",
                title="The ClusterPolicy leaves drivers to NVIDIADriver objects",
                summary="Its own version has no effect.",
                steps=("Draft the plan for the NVIDIADriver.",),
            )
        if facts.is_driver_off:
            yield Check(
                "driver-off",
                title="The ClusterPolicy leaves drivers to the nodes",
                summary="The operator never manages a driver of the node image.",
                steps=("Set spec.driver.enabled to true if the operator should run drivers.",),
            )
        if facts.state == "ignored":
            yield Check(
                "ignored",
                title="The operator ignores this ClusterPolicy",
                summary="Another ClusterPolicy is older.",
                steps=("Draft the plan for the older one, or delete it.",),
            )
