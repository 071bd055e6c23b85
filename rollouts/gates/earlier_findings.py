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
    time: timedelta  # of all nodes, each until its first one


@dataclass(frozen=True)
class EarlierFindings:
    """The findings of changed nodes and of nodes like them, in the days before the first change."""

    nodes: Mapping[str, datetime]  # by name: since when it is observed, in these days
    ends_at: datetime
    findings: tuple[EarlierFinding, ...] = ()

    def until_first(self, rule: str, severity: str) -> "FirstsBefore":
        """Returns the first finding of each node that is at least as severe. Computed once for each kind."""
        if (rule, severity) not in self._by_kind:
            firsts: dict[str, datetime] = {}
            for one in self.findings:
                if one.rule == rule and RANKS[one.severity] <= RANKS[severity]:
                    firsts[one.node] = min(firsts.get(one.node, one.since), one.since)
            ends = ((began, min(firsts.get(name, self.ends_at), self.ends_at)) for name, began in self.nodes.items())
            time = sum((max(timedelta(0), end - began) for began, end in ends), timedelta(0))
            self._by_kind[rule, severity] = FirstsBefore(len(firsts), time)
        return self._by_kind[rule, severity]

    @cached_property
    def _by_kind(self) -> "dict[tuple[str, str], FirstsBefore]":
        return {}

    @cached_property
    def kinds(self) -> frozenset[tuple[str, str]]:
        """Returns rule and severity of each finding."""
        return frozenset((one.rule, one.severity) for one in self.findings)
