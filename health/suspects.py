"""Suspects: the properties that failed nodes share and good nodes lack. Pure.

Each property that splits the nodes is tested by Fisher's exact test, one-sided, and corrected by Holm's method with
weights: every property has the same share of α, and its values divide that. So a property with many values, such as the
rack, costs the others no more than one with two. Few nodes prove nothing: with 3 failures on 10 nodes and 6 properties
of two values a perfect split has p = 6 × 0.0083 = 0.05.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

from wording.numbers import count, either

ALPHA = 0.05  # the most often that random failures may name a cause
SHOWN = 6


@dataclass(frozen=True)
class NodeOutcome:
    """A node that failed or succeeded, with its properties by display name: {"kernel": "5.15.0-1068"}.

    A set has all values of a property that has several, such as the images of its pods; it may be empty.
    """

    name: str
    failed: bool
    properties: Mapping[str, str | frozenset[str]]  # blank: unknown


class Property(NamedTuple):
    name: str
    value: str


@dataclass(frozen=True)
class Suspect:
    """One property, or several that split the nodes alike."""

    properties: tuple[Property, ...]
    failed_with: int
    failed: int
    good_with: int
    good: int
    p: float  # Fisher's exact test
    corrected_p: float  # Holm's method

    @property
    def is_cause(self) -> bool:
        """Returns whether the counts exclude chance."""
        return self.corrected_p <= ALPHA

    @property
    def is_commoner_in_failed(self) -> bool:
        return self.failed_with * self.good > self.good_with * self.failed

    @property
    def title(self) -> str:
        """Returns "kernel 5.15.0-1068 and OS image Ubuntu 22.04"."""
        return " and ".join(f"{name} {value}" for name, value in self.properties)

    @property
    def counts(self) -> str:
        return f"on {self.failed_with} of {self.failed} failed nodes and {self.good_with} of {self.good} good nodes"


@dataclass(frozen=True)
class Suspects:
    failed: int
    good: int
    compared: int  # properties with a known value on every node
    suspects: tuple[Suspect, ...]  # the least likely by chance first
    unknown: tuple[str, ...] = ()  # names of properties that are not known on every node, and so are not compared

    @property
    def title(self) -> str:
        if not self.failed:
            return "No node failed"
        if not self.good:
            return (
                f"{either(self.failed, 'The only changed node', f'All {self.failed} nodes')} failed: nothing to compare"
            )
        if not self.suspects:
            return "The failed nodes share nothing that good nodes lack"
        if self.suspects[0].is_cause:
            return "Probable cause: " + " and ".join(name for name, _ in self.suspects[0].properties)
        return "Candidates; too few nodes for proof"

    @property
    def summary(self) -> str:
        if not self.good or not self.suspects:
            return f"{count(self.failed, 'failed node')}, {count(self.good, 'good node')}."
        return f"{self.suspects[0].title}: {self.suspects[0].counts}."


def suspects_of(outcomes: Iterable[NodeOutcome]) -> Suspects:
    """Returns the suspects. Nodes have different names."""
    nodes = list(outcomes)
    names = dict.fromkeys(name for node in nodes for name in node.properties)
    unknown = tuple(name for name in names if any(node.properties.get(name, "") == "" for node in nodes))
    compared = [name for name in names if name not in unknown]
    every, failed = frozenset(node.name for node in nodes), frozenset(node.name for node in nodes if node.failed)
    groups = {which: values for which, values in _groups(nodes, compared).items() if which != every}
    weights = _weights(groups, every)
    found = [_suspect(which, values, failed, every) for which, values in groups.items()]
    likely = sorted((one for one in found if one.is_commoner_in_failed), key=lambda one: (one.p, one.properties))
    corrected = tuple(_holm(likely, [weights[one.properties[0]] for one in likely])[:SHOWN])
    return Suspects(len(failed), len(every - failed), len(compared), corrected, unknown)


def _weights(groups: Mapping[frozenset[str], Sequence[Property]], every: frozenset[str]) -> dict[Property, float]:
    """Returns the share of α for each value. A group and the rest are one split, and one test."""
    splits: dict[str, set[frozenset[frozenset[str]]]] = defaultdict(set)
    for which, values in groups.items():
        for name, _ in values:
            splits[name].add(frozenset((which, every - which)))
    of_split: dict[frozenset[frozenset[str]], float] = defaultdict(float)
    for its in splits.values():
        for split in its:
            of_split[split] += 1 / (len(splits) * len(its))
    return {value: of_split[frozenset((which, every - which))] for which, values in groups.items() for value in values}


def _groups(nodes: Sequence[NodeOutcome], names: Iterable[str]) -> dict[frozenset[str], list[Property]]:
    members: dict[Property, set[str]] = defaultdict(set)
    for name in names:
        for node in nodes:
            value = node.properties[name]
            for one in (value,) if isinstance(value, str) else value:
                members[Property(name, one)].add(node.name)
    groups: dict[frozenset[str], list[Property]] = defaultdict(list)
    for each, having in members.items():
        groups[frozenset(having)].append(each)
    return groups


def _suspect(
    which: frozenset[str], values: Sequence[Property], failed: frozenset[str], every: frozenset[str]
) -> Suspect:
    failed_with = len(which & failed)
    p = fisher(failed_with, len(failed), len(which), len(every))
    good = len(every) - len(failed)
    return Suspect(tuple(values), failed_with, len(failed), len(which) - failed_with, good, p, p)


def fisher(failed_with: int, failed: int, having: int, nodes: int) -> float:
    """Returns the chance that at least `failed_with` of the failed nodes have a property: the hypergeometric tail."""
    most = min(failed, having)
    ways = sum(comb(having, k) * comb(nodes - having, failed - k) for k in range(failed_with, most + 1))
    return ways / comb(nodes, failed)


def _holm(ordered: Iterable[Suspect], weights: Iterable[float]) -> list[Suspect]:
    """Returns the suspects with corrected p, the smallest first."""
    corrected: list[Suspect] = []
    least, left = 0.0, 1.0
    for suspect, weight in sorted(zip(ordered, weights, strict=True), key=lambda pair: pair[0].p / pair[1]):
        least = min(1.0, max(least, suspect.p * left / weight))
        left -= weight
        corrected.append(replace(suspect, corrected_p=least))
    return corrected
