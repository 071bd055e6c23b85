"""A comparison of the findings on changed nodes with those of comparable nodes in the days before. Pure.

Without an effect of the change, findings come as often per node-hour as before. Few findings tell the rate badly, so
that it has a gamma distribution. The number of findings on changed nodes is negative binomial then.

The proof is an e-value: likelihood ratios for several effects, averaged. However often it is read, it exceeds 1/α with
a chance of at most α if the change has no effect (Ville's inequality). So a gate may look at every round.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from health.rules.base import RANKS, Severity
from rollouts.gates.base import Items
from rollouts.gates.earlier_findings import EarlierFindings, FindingKind, time_without
from rollouts.gates.first_events import FirstEvents
from rollouts.gates.sequential_test import ALPHA
from wording.reports import EvidenceItem

EFFECTS = (2.0, 10.0, 100.0, 1000.0)  # by how much findings come more often
PRIOR = 0.5  # findings (Jeffreys)
# As likely as this by chance a finding counts as usual. A critical one has to be likelier: a person is asked else.
LIKELY = {Severity.CRITICAL.value: 0.01, Severity.WARNING.value: 0.005, Severity.NOTE.value: 0.005}
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class BackgroundRate:
    """The first findings of one kind: on each changed node since its release, and on each node before."""

    kind: FindingKind
    here: int  # changed nodes with a finding
    nodes: int  # changed nodes
    time_here: timedelta  # of the changed nodes, each until its first finding
    past: int  # nodes with a finding
    past_time: timedelta
    tests: int = 1  # comparisons of the same gate

    @property
    def expected(self) -> float:
        """Returns how many changed nodes would have a finding by chance."""
        return self.past * (self.time_here / self.past_time)

    @cached_property
    def is_proved(self) -> bool:
        return self._e_value(self.here) >= self.tests / ALPHA

    @cached_property
    def is_likely(self) -> bool:
        """Returns whether chance explains the findings."""
        return not self.is_proved and self._chance_of(self.here) >= LIKELY[self.kind.severity]

    def _e_value(self, found: int) -> float:
        now, before = self.time_here / HOUR, self.past_time / HOUR
        shape = self.past + PRIOR
        ratios = (
            found * math.log(effect) + (found + shape) * math.log((before + now) / (before + effect * now))
            for effect in EFFECTS
        )
        return sum(map(math.exp, ratios)) / len(EFFECTS)

    def _chance_of(self, least: int) -> float:
        """Returns the chance of at least this many findings if the change has no effect."""
        shape = self.past + PRIOR
        share = self.time_here / (self.time_here + self.past_time)
        term = (1 - share) ** shape
        fewer = 0.0
        for number in range(least):
            fewer += term
            term *= (shape + number) / (number + 1) * share
        return max(0.0, 1 - fewer)

    @property
    def items(self) -> Items:
        name = f"{self.kind.rule}, {self.kind.severity}"
        proving = (number for number in range(self.here, self.nodes + 1) if self._e_value(number) >= self.tests / ALPHA)
        fails_from = next(proving, None)
        never = f"never with {self.nodes} nodes"
        effect = self.here / self.expected if self.expected else 0
        return (
            EvidenceItem(f"{name}: changed nodes", f"{self.here} of {self.nodes}"),
            EvidenceItem(f"{name}: before", f"{self.past} in {self.past_time / HOUR:,.0f} node-hours"),
            EvidenceItem(
                f"{name}: expected by chance", f"{self.expected:.2g} in {self.time_here / HOUR:.1f} node-hours"
            ),
            *([EvidenceItem(f"{name}: effect", round(effect, 1), "times")] if effect else []),
            EvidenceItem(f"{name}: fails from", never if fails_from is None else f"{fails_from} of {self.nodes} nodes"),
        )


@dataclass(frozen=True)
class FindingComparison:
    """The findings of one kind on changed nodes, beside unchanged nodes and beside the days before."""

    peers: FirstEvents | None  # None: no unchanged node has one, or too few nodes are compared
    past: BackgroundRate | None  # None: no node had one before

    @property
    def is_usual(self) -> bool:
        """Returns whether unchanged nodes have them as often, or chance explains them."""
        if self.peers and self.peers.is_as_often:
            return True
        return self.past is not None and self.past.is_likely and not (self.peers and self.peers.is_proved)

    @property
    def is_proved(self) -> bool:
        """Returns whether the change caused them. Findings that no other node has or had count as caused."""
        if self.peers:
            return self.peers.is_proved
        return self.past is None or self.past.is_proved

    @property
    def why_usual(self) -> str:
        is_shared = self.peers is not None and self.peers.is_as_often
        return "On unchanged nodes too" if is_shared else "As often before the change"

    @property
    def items(self) -> Items:
        return (*(self.peers.items if self.peers else ()), *(self.past.items if self.past else ()))


def past_kinds(past: EarlierFindings, rules: Collection[str] | None, severity: str) -> set[FindingKind]:
    """Returns the kinds of the past findings that a gate counts; None: every rule."""
    return {
        kind for kind in past.kinds if (rules is None or kind.rule in rules) and RANKS[kind.severity] <= RANKS[severity]
    }


def compare_with_past(
    kind: FindingKind,
    firsts: Mapping[str, datetime],
    released: Mapping[str, datetime],
    past: EarlierFindings,
    *,
    tests: int,
    now: datetime,
) -> BackgroundRate | None:
    """Returns the comparison; None if the past has no such finding, so that it is not usual.

    `firsts` has the first finding of changed nodes that have one, and `released` the release of every changed node.
    """
    before, here = past.until_first(kind), time_without(released, firsts, now)
    if not before.nodes or before.time <= timedelta(0):
        return None
    return BackgroundRate(
        kind, len(firsts), len(released), max(here, timedelta(minutes=1)), before.nodes, before.time, tests
    )
