"""What is open of GPUs and of their nodes, as the table of GPUs asks for it."""

from dataclasses import dataclass, field
from functools import cached_property

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
    sentence: str
    is_of_node: bool

    @property
    def rank(self) -> int:
        return RANKS.get(self.severity, WELL)


@dataclass
class Findings:
    """The worst that is open of each GPU, and of each node as a whole."""

    of_gpu: dict[tuple[int, str], FindingSeen] = field(default_factory=dict)  # by node, and index or UUID
    of_node: dict[int, FindingSeen] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> frozenset[int]:
        """Those on which there is any: most have none, and their GPUs need no look."""
        return frozenset(self.of_node) | {node for node, _ in self.of_gpu}

    def add(self, node: int, subject: str, seen: FindingSeen) -> None:
        if seen.is_of_node:
            self.of_node[node] = _worse(self.of_node.get(node), seen)
        else:
            key = node, subject.removeprefix(OF_A_GPU).partition(" of ")[0]
            self.of_gpu[key] = _worse(self.of_gpu.get(key), seen)

    def of(self, node: int, index: int, uuid: str) -> FindingSeen | None:
        """Its own before its node's, where both are as bad."""
        own = self.of_gpu.get((node, str(index))) or self.of_gpu.get((node, uuid))
        whole = self.of_node.get(node)
        return _worse(own, whole) if own and whole else own or whole


def _worse(known: FindingSeen | None, other: FindingSeen) -> FindingSeen:
    return other if known is None or other.rank < known.rank else known


def findings_of(user: User) -> Findings:
    found = Findings()
    rows = Finding.objects.visible_to(user).open().of_nodes_own().order_by("-pk")
    for row in rows.only("pk", "node_id", "subject", "rule", "severity", "sentence"):
        is_of_node = not row.subject.startswith(OF_A_GPU)
        seen = FindingSeen(row.pk, row.rule, row.severity, row.sentence, is_of_node)
        found.add(row.node_id or 0, row.subject, seen)
    return found
