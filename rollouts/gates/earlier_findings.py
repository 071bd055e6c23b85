"""The findings of the days before a change, with which gates compare those of changed nodes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import NamedTuple

from health.rules.base import RANKS


class FindingKind(NamedTuple):
    """Findings of one rule that are at least as bad as this."""

    rule: str
    severity: str

    def has(self, rule: str, severity: str) -> bool:
        return rule == self.rule and RANKS[severity] <= RANKS[self.severity]


@dataclass(frozen=True)
class EarlierFinding:
    """The first finding of a node by a rule and a severity, in the days before a stage."""

    node: str
    rule: str
    severity: str
    since: datetime


class FirstsBefore(NamedTuple):
    nodes: int  # with such a finding
    time: timedelta  # sum over nodes of the time until the first finding


@dataclass(frozen=True)
class EarlierFindings:
    """The findings of changed nodes and of nodes like them, in the days before the first change."""

    nodes: Mapping[str, datetime]  # by name: since when it is observed, in these days
    ends_at: datetime
    findings: tuple[EarlierFinding, ...] = ()

    def until_first(self, kind: FindingKind) -> FirstsBefore:
        """Returns the nodes with a finding of the kind, and the time without one. Computed once for each kind."""
        if kind not in self._by_kind:
            firsts: dict[str, datetime] = {}
            for one in self.findings:
                if kind.has(one.rule, one.severity):
                    firsts[one.node] = min(firsts.get(one.node, one.since), one.since)
            self._by_kind[kind] = FirstsBefore(len(firsts), time_without(self.nodes, firsts, self.ends_at))
        return self._by_kind[kind]

    @cached_property
    def _by_kind(self) -> dict[FindingKind, FirstsBefore]:
        return {}

    @cached_property
    def kinds(self) -> frozenset[FindingKind]:
        return frozenset(FindingKind(one.rule, one.severity) for one in self.findings)


def time_without(begins: Mapping[str, datetime], firsts: Mapping[str, datetime], ends_at: datetime) -> timedelta:
    """Returns the time of all nodes together, each from its begin until its first finding."""
    ends = ((began, min(firsts.get(name, ends_at), ends_at)) for name, began in begins.items())
    return sum((max(timedelta(0), end - began) for began, end in ends), timedelta(0))
