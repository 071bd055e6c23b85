"""Label selectors as Kubernetes reads them: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Pure.

Grammar: kubernetes.io/docs/concepts/overview/working-with-objects/labels, "Label selectors".
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
SET = re.compile(rf"^(?P<key>{KEY})\s+(?P<how>in|notin)\s*\((?P<values>[^()]*)\)$")
EQUAL = re.compile(rf"^(?P<key>{KEY})\s*(?P<how>==|=|!=)\s*(?P<value>{VALUE})$")
EXISTS = re.compile(rf"^(?P<absent>!?)\s*(?P<key>{KEY})$")
LONGEST = 1000  # characters, as a pool keeps them
MOST = 50  # requirements; each is a condition on every node
SHOWN = 80  # characters of what cannot be read


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


def of_object(given: Mapping[str, Any] | None) -> Selector | None:
    """As an object of the API holds it, in `matchLabels` and `matchExpressions`. None selects nothing.

    :raises BadSelector: when it is none that the API server reads, which then selects nothing either
    """
    if given is None:
        return None
    labels, expressions = given.get("matchLabels") or {}, given.get("matchExpressions") or []
    if (
        not _is_map(labels)
        or not isinstance(expressions, list)
        or not all(isinstance(of, str) for of in labels.values())
    ):
        raise BadSelector("A selector has matchLabels, a map, and matchExpressions, a list.")
    return Selector((*exactly(labels).requirements, *(_expression(one) for one in expressions)))


def readable(given: Mapping[str, Any] | None) -> Selector | None:
    """The same, and None for one that the API server cannot read: it passes over it."""
    try:
        return of_object(given)
    except BadSelector:
        return None


def _expression(given: Any) -> Requirement:
    key, how, values = (given.get(name) for name in ("key", "operator", "values")) if _is_map(given) else (None,) * 3
    wanted = values or []
    if not isinstance(key, str) or not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
        raise BadSelector("An expression of a selector has a key, an operator and, for some, values.")
    if how in {"In", "NotIn"} and wanted:
        return Requirement(key, frozenset(wanted), negated=how == "NotIn")
    if how in {"Exists", "DoesNotExist"} and not wanted:
        return Requirement(key, None, negated=how == "DoesNotExist")
    raise BadSelector(f"“{str(how)[:SHOWN]}” of {key[:SHOWN]} is no expression with {len(wanted)} values.")


def _is_map(given: Any) -> bool:
    return isinstance(given, Mapping)


def parse(text: str) -> Selector:
    """:raises BadSelector: naming the part that cannot be read"""
    if len(text) > LONGEST:
        raise BadSelector(f"A selector has at most {LONGEST} characters; this one has {len(text)}.")
    parts = [part.strip() for part in _parts(text)] if text.strip() else []
    if len(parts) > MOST:
        raise BadSelector(f"A selector has at most {MOST} requirements; this one has {len(parts)}.")
    return Selector(tuple(_requirement(part) for part in parts))


def _parts(text: str) -> Iterator[str]:
    """What commas part, but for those in brackets. Looks at each character once."""
    is_inside, start = False, 0
    for at, char in enumerate(text):
        if char in "()":
            is_inside = char == "("
        elif char == "," and not is_inside:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _requirement(part: str) -> Requirement:
    if found := SET.match(part):
        values = [value.strip() for value in found["values"].split(",")]
        if not all(re.fullmatch(VALUE, value) for value in values):
            raise BadSelector(f"“{part[:SHOWN]}” has a value that no label can have.")
        return Requirement(found["key"], frozenset(values), negated=found["how"] == "notin")
    if found := EQUAL.match(part):
        return Requirement(found["key"], frozenset({found["value"]}), negated=found["how"] == "!=")
    if found := EXISTS.match(part):
        return Requirement(found["key"], None, negated=found["absent"] == "!")
    raise BadSelector(f"“{part[:SHOWN]}” is no label selector. Write key=value, key in (a,b), key or !key.")
