"""Open findings about GPUs and their nodes for the GPU table."""

from dataclasses import dataclass, field
from functools import cached_property

from django.db.models import Exists, OuterRef

from fleet.models import Gpu
from health.correlation import OF_A_GPU
from health.models import Finding
from health.rules.base import RANKS, Severity
from people.models import User

WELL = len(Severity)  # the rank of a GPU without a finding


@dataclass(frozen=True)
class FindingSeen:
    key: int
    rule: str
    severity: str
    title: str
    is_of_node: bool

    @property
    def rank(self) -> int:
        return RANKS.get(self.severity, WELL)


@dataclass
class Findings:
    """The worst open finding of each GPU, and of each node as a whole."""

    of_gpu: dict[tuple[int, str], FindingSeen] = field(default_factory=dict)  # by node, and UUID, else number or name
    of_number: dict[tuple[int, str], FindingSeen] = field(default_factory=dict)  # also findings whose UUID no GPU has
    of_node: dict[int, FindingSeen] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> frozenset[int]:
        """Returns the nodes with findings. GPUs of other nodes need no lookup."""
        return frozenset(self.of_node) | {node for node, _ in self.of_gpu}

    def add(self, node: int, subject: str, uuid: str, seen: FindingSeen, *, is_named: bool) -> None:
        """Adds a finding.

        `uuid` is its board's, empty if unknown. `is_named` means that a GPU of the node has this UUID.
        """
        if seen.is_of_node:
            self.of_node[node] = _worse_finding(self.of_node.get(node), seen)
            return
        called = subject.removeprefix(OF_A_GPU).partition(" of ")[0]
        self.of_gpu[node, uuid or called] = _worse_finding(self.of_gpu.get((node, uuid or called)), seen)
        if not is_named:
            self.of_number[node, called] = _worse_finding(self.of_number.get((node, called)), seen)

    def of(self, node: int, index: int, uuid: str) -> FindingSeen | None:
        """Returns the worst finding. The GPU's own precedes an equally severe one of its node."""
        by_number = (self.of_gpu if uuid else self.of_number).get((node, str(index)))
        found = None
        for one in (by_number, self.of_gpu.get((node, uuid)), self.of_node.get(node)):
            found = _worse_finding(found, one) if one else found
        return found


def _worse_finding(known: FindingSeen | None, other: FindingSeen) -> FindingSeen:
    return other if known is None or other.rank < known.rank else known


def findings_of(user: User) -> Findings:
    found = Findings()
    rows = Finding.objects.visible_to(user).open().of_nodes_own().order_by("-pk")
    boards = Gpu.objects.filter(node=OuterRef("node"), uuid=OuterRef("gpu_uuid")).exclude(uuid="")
    told = rows.values_list("node", "subject", "gpu_uuid", Exists(boards), "pk", "rule", "severity", "title")
    for node, subject, uuid, is_named, key, rule, severity, title in told:
        seen = FindingSeen(key, rule, severity, title, is_of_node=not subject.startswith(OF_A_GPU))
        found.add(node or 0, subject, uuid, seen, is_named=is_named)
    return found
