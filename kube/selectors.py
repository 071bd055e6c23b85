"""Label selectors in Kubernetes syntax: `a=b,c!=d,e in (f,g),h notin (i),j,!k`. Pure.

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
LONGEST = 1000  # characters, as in the column of a pool
MOST = 50  # requirements; each is tested on every node
SHOWN = 80  # characters of the unreadable text


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
        """Tells whether every requirement matches. A selector without requirements matches everything."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def exactly(labels: Mapping[str, str]) -> Selector:
    """Returns the selector of a `nodeSelector`: each of these labels with this value."""
    return Selector(tuple(Requirement(key, frozenset({value}), negated=False) for key, value in labels.items()))


def of_object(given: Mapping[str, Any] | None) -> Selector | None:
    """Returns the selector of an API object's `matchLabels` and `matchExpressions`. None selects nothing.

    :raises BadSelector: when the API server would reject it, and so select nothing
    """
    if given is None:
        return None
    labels, expressions = given.get("matchLabels") or {}, given.get("matchExpressions") or []
    if (
        not _is_map(labels)
        or not isinstance(expressions, list)
        or not all(isinstance(value, str) for value in labels.values())
    ):
        raise BadSelector("A selector has matchLabels, a map, and matchExpressions, a list.")
    return Selector((*exactly(labels).requirements, *(_expression(item) for item in expressions)))


def readable(given: Mapping[str, Any] | None) -> Selector | None:
    """Returns the selector, or None for one that the API server cannot read and ignores."""
    try:
        return of_object(given)
    except BadSelector:
        return None


def _expression(given: Any) -> Requirement:
    key, how, values = (given.get(name) for name in ("key", "operator", "values")) if _is_map(given) else (None,) * 3
    wanted = values or []
    if not isinstance(key, str) or not isinstance(wanted, list) or not all(isinstance(value, str) for value in wanted):
        raise BadSelector("An expression of a selector has a key, an operator and, for some, values.")
    if how in {"In", "NotIn"} and wanted:
        return Requirement(key, frozenset(wanted), negated=how == "NotIn")
    if how in {"Exists", "DoesNotExist"} and not wanted:
        return Requirement(key, None, negated=how == "DoesNotExist")
    raise BadSelector(f"“{str(how)[:SHOWN]}” of {key[:SHOWN]} is not a valid expression with {len(wanted)} values.")


def _is_map(given: Any) -> bool:
    return isinstance(given, Mapping)


def parse(text: str) -> Selector:
    """Parses a selector.

    :raises BadSelector: with the part that cannot be parsed
    """
    if len(text) > LONGEST:
        raise BadSelector(f"A selector has at most {LONGEST} characters; this one has {len(text)}.")
    parts = [part.strip() for part in _parts(text)] if text.strip() else []
    if len(parts) > MOST:
        raise BadSelector(f"A selector has at most {MOST} requirements; this one has {len(parts)}.")
    return Selector(tuple(_requirement(part) for part in parts))


def _parts(text: str) -> Iterator[str]:
    """Splits at commas outside of brackets, in one pass."""
    is_inside, start = False, 0
    for position, char in enumerate(text):
        if char in "()":
            is_inside = char == "("
        elif char == "," and not is_inside:
            yield text[start:position]
            start = position + 1
    yield text[start:]


def _requirement(part: str) -> Requirement:
    if match := SET.match(part):
        values = [value.strip() for value in match["values"].split(",")]
        if not all(re.fullmatch(VALUE, value) for value in values):
            raise BadSelector(f"“{part[:SHOWN]}” has an invalid label value.")
        return Requirement(match["key"], frozenset(values), negated=match["how"] == "notin")
    if match := EQUAL.match(part):
        return Requirement(match["key"], frozenset({match["value"]}), negated=match["how"] == "!=")
    if match := EXISTS.match(part):
        return Requirement(match["key"], None, negated=match["absent"] == "!")
    raise BadSelector(f"“{part[:SHOWN]}” is not a label selector. Write key=value, key in (a,b), key or !key.")
