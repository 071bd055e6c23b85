"""Label selectors as Kubernetes reads them: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Pure.

Grammar: kubernetes.io/docs/concepts/overview/working-with-objects/labels, "Label selectors".
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
SET = re.compile(rf"^(?P<key>{KEY})\s+(?P<how>in|notin)\s*\((?P<values>[^()]*)\)$")
EQUAL = re.compile(rf"^(?P<key>{KEY})\s*(?P<how>==|=|!=)\s*(?P<value>{VALUE})$")
EXISTS = re.compile(rf"^(?P<absent>!?)\s*(?P<key>{KEY})$")
COMMA_OUTSIDE_BRACKETS = re.compile(r",(?![^()]*\))")


class BadSelector(ValueError):
    """The text is no label selector."""


@dataclass(frozen=True)
class Requirement:
    key: str
    wanted: frozenset[str] | None  # None: any value
    negated: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.wanted is None:
            return (self.key in labels) != self.negated
        return (labels.get(self.key) in self.wanted) != self.negated


@dataclass(frozen=True)
class Selector:
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether every requirement holds. A selector without any matches everything."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def exactly(labels: Mapping[str, str]) -> Selector:
    """As a `nodeSelector` means it: each of these labels, with this value."""
    return Selector(tuple(Requirement(key, frozenset({value}), negated=False) for key, value in labels.items()))


def parse(text: str) -> Selector:
    """:raises BadSelector: naming the part that cannot be read"""
    parts = [part.strip() for part in COMMA_OUTSIDE_BRACKETS.split(text)] if text.strip() else []
    return Selector(tuple(_requirement(part) for part in parts))


def _requirement(part: str) -> Requirement:
    if found := SET.match(part):
        values = [value.strip() for value in found["values"].split(",")]
        if not all(re.fullmatch(VALUE, value) for value in values):
            raise BadSelector(f"“{part}” has a value that no label can have.")
        return Requirement(found["key"], frozenset(values), negated=found["how"] == "notin")
    if found := EQUAL.match(part):
        return Requirement(found["key"], frozenset({found["value"]}), negated=found["how"] == "!=")
    if found := EXISTS.match(part):
        return Requirement(found["key"], None, negated=found["absent"] == "!")
    raise BadSelector(f"“{part}” is no label selector. Write key=value, key in (a,b), key or !key.")
