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

    of_gpu: dict[tuple[int, str], FindingSeen] = field(default_factory=dict)  # by node, and UUID, else number or name
    of_number: dict[tuple[int, str], FindingSeen] = field(default_factory=dict)  # by number those that have a UUID, too
    of_node: dict[int, FindingSeen] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> frozenset[int]:
        """Those on which there is any: most have none, and their GPUs need no look."""
        return frozenset(self.of_node) | {node for node, _ in self.of_gpu}

    def add(self, node: int, subject: str, uuid: str, seen: FindingSeen) -> None:
        """`uuid`: of its board; blank: nothing has it."""
        if seen.is_of_node:
            self.of_node[node] = _worse(self.of_node.get(node), seen)
            return
        called = subject.removeprefix(OF_A_GPU).partition(" of ")[0]
        for found, key in ((self.of_gpu, (node, uuid or called)), (self.of_number, (node, called))):
            found[key] = _worse(found.get(key), seen)

    def of(self, node: int, index: int, uuid: str) -> FindingSeen | None:
        """Its own before its node's, where both are as bad."""
        by_number = (self.of_gpu if uuid else self.of_number).get((node, str(index)))
        found = None
        for one in (by_number, self.of_gpu.get((node, uuid)), self.of_node.get(node)):
            found = _worse(found, one) if one else found
        return found


def _worse(known: FindingSeen | None, other: FindingSeen) -> FindingSeen:
    return other if known is None or other.rank < known.rank else known


def findings_of(user: User) -> Findings:
    found = Findings()
    rows = Finding.objects.visible_to(user).open().of_nodes_own().order_by("-pk")
    for row in rows.only("pk", "node_id", "subject", "gpu_uuid", "rule", "severity", "sentence"):
        is_of_node = not row.subject.startswith(OF_A_GPU)
        seen = FindingSeen(row.pk, row.rule, row.severity, row.sentence, is_of_node)
        found.add(row.node_id or 0, row.subject, row.gpu_uuid, seen)
    return found
