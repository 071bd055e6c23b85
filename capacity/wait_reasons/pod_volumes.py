"""The volumes of a pod, and the nodes that reach them, as kube-scheduler reads them. Pure.

kubernetes, pkg/scheduler/framework/plugins at 1.34: volumebinding, volumezone and nodevolumelimits/csi.go, which counts
a volume of several pods once. Volumes that are still attached, but that no pod of the node uses any more, are not read.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

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
    driver: str | None = ""  # of CSI; blank: none; None: unknown
    terms: Sequence[
        Term
    ] = ()  # node affinity of the volume, or topologies of the class: one is enough; empty: any node
    zones: tuple[LabelRequirement, ...] = ()  # zone labels of the volume, for nodes that have any

    @property
    def text(self) -> str:
        """Returns where the volume is: `zone=a`, or `2 places`."""
        terms = [*self.terms, *([self.zones] if self.zones else [])]
        return ", ".join(each.text for each in terms[0]) if len(terms) == 1 else f"{len(terms)} places"


@dataclass(frozen=True)
class DriverVolumes:
    """The volumes of one CSI driver on the nodes of a cluster."""

    limits: Mapping[str, int]  # by name of the node; other nodes have none
    used: Mapping[str, frozenset[str]] = field(default_factory=dict)  # volumes of pods by name of the node

    @cached_property
    def _free(self) -> Mapping[str, int]:
        return {node: limit - len(self.used.get(node, ())) for node, limit in self.limits.items()}

    @cached_property
    def _users(self) -> Mapping[str, Sequence[str]]:
        """Returns the nodes by volume."""
        found: dict[str, list[str]] = defaultdict(list)
        for node, volumes in self.used.items():
            for volume in volumes:
                found[volume].append(node)
        return found

    def full_nodes(self, own: Collection[str]) -> set[str]:
        """Returns the nodes that have no room now for these volumes of a pod."""
        found = {node for node, free in self._free.items() if free < len(own)}
        for node in {node for volume in own for node in self._users.get(volume, ())}:
            added = len([volume for volume in own if volume not in self.used[node]])
            if not added or self._free.get(node, added) >= added:
                found.discard(node)
        return found

    def text(self, node: str) -> str:
        """Returns the use of a node: `25 of 25`."""
        return f"{len(self.used.get(node, ()))} of {self.limits[node]}"


def by_driver(volumes: Iterable[ClaimVolume]) -> Mapping[str, Collection[str]]:
    """Returns the volumes of a pod by their CSI driver; those that do not exist yet have the name of their claim."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in volumes:
        if each.driver:
            found[each.driver].add(each.volume or f"/{each.claim}")
    return found
