"""The volumes of a pod, and the nodes that reach them, as kube-scheduler reads them. Pure.

kubernetes, pkg/scheduler/framework/plugins at 1.34: volumebinding and volumezone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from capacity.wait_reasons.label_requirements import LabelRequirement, Term

# Labels of nodes and volumes; the scheduler ignores a volume's on nodes that have none of them.
ZONE_LABELS = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


class ClaimState(StrEnum):
    MISSING = "missing"
    LEAVING = "leaving"
    UNBOUND = "unbound"  # and its class makes a volume before the pod has a node
    WAITS_FOR_NODE = "waits for node"  # its class makes a volume once the pod has a node
    BOUND = "bound"


@dataclass(frozen=True)
class ClaimVolume:
    """One claim of a pod."""

    claim: str
    state: ClaimState
    volume: str = ""  # of a bound claim
    storage_class: str = ""  # of another; blank: none, or unknown
    terms: Sequence[
        Term
    ] = ()  # node affinity of the volume, or topologies of the class: one is enough; empty: any node
    zones: tuple[LabelRequirement, ...] = ()  # zone labels of the volume, for nodes that have any

    @property
    def text(self) -> str:
        """Returns where the volume is: `zone=a`, or `2 places`."""
        terms = [*self.terms, *([self.zones] if self.zones else [])]
        return ", ".join(each.text for each in terms[0]) if len(terms) == 1 else f"{len(terms)} places"
