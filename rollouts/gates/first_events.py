"""A comparison of changed and unchanged nodes by the order of their first events. Pure."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from rollouts.gates.base import Items
from rollouts.gates.sequential_test import ComparedTrial, is_proved, trials_until_proof
from wording.reports import EvidenceItem

Firsts = dict[str, datetime]  # by name of a node


@dataclass(frozen=True)
class FirstEvents:
    """The nodes with an event since the change, such as a finding of one rule: changed ones, and unchanged ones.

    Each node's first event is a trial. By chance it is on a changed node as often as such nodes are among the nodes
    that are still without one.
    """

    name: str  # of the rule or the measure
    here: Firsts
    nodes: int
    there: Firsts
    peers: int
    tests: int = 1  # comparisons of the same gate

    @property
    def is_as_often(self) -> bool:
        return len(self.there) * self.nodes >= len(self.here) * self.peers

    @cached_property
    def trials(self) -> list[ComparedTrial]:
        found, left = [], {True: self.nodes, False: self.peers}
        for _, is_here in sorted(
            [(at, True) for at in self.here.values()] + [(at, False) for at in self.there.values()]
        ):
            found.append(ComparedTrial(is_here, left[True] / (left[True] + left[False])))
            left[is_here] -= 1
        return found

    @property
    def is_proved(self) -> bool:
        return not self.is_as_often and is_proved(self.trials, tests=self.tests)

    @property
    def items(self) -> Items:
        here, there = len(self.here), len(self.there)
        left = range(self.nodes - here, 0, -1)
        further = [ComparedTrial(is_against=True, chance=nodes / (nodes + self.peers - there)) for nodes in left]
        more = trials_until_proof(self.trials, further, tests=self.tests)
        fails_from = f"never with {self.nodes} nodes" if more is None else f"{here + more} of {self.nodes} nodes"
        effect = round(here * self.peers / (self.nodes * there), 1) if there else None
        return (
            EvidenceItem(f"{self.name}: changed nodes", f"{here} of {self.nodes}"),
            EvidenceItem(f"{self.name}: unchanged nodes", f"{there} of {self.peers}"),
            *([EvidenceItem(f"{self.name}: effect", effect, "times")] if effect is not None else []),
            EvidenceItem(f"{self.name}: fails from", fails_from),
        )
