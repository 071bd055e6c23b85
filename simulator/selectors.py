"""Label selectors, in the grammar of k8s.io/apimachinery's labels package."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from simulator.names import label_key_complaint, label_value_complaint

Labels = Mapping[str, str]

TOKEN = re.compile(r"\s*(==|!=|=|!|<|>|\(|\)|,|[^\s=!<>(),]+)")


class Operator(StrEnum):
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "!"
    GREATER = ">"
    LESS = "<"


class SelectorError(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Labels) -> bool:
        return TESTS[self.operator](labels.get(self.key), self.values)


def _compared(value: str | None, values: frozenset[str], sign: int) -> bool:
    try:
        return value is not None and (int(value) - int(next(iter(values)))) * sign > 0
    except ValueError:
        return False


TESTS: dict[Operator, Callable[[str | None, frozenset[str]], bool]] = {
    Operator.IN: lambda value, values: value in values,
    # A missing key satisfies `!=` and `notin`.
    Operator.NOT_IN: lambda value, values: value not in values,
    Operator.EXISTS: lambda value, _: value is not None,
    Operator.ABSENT: lambda value, _: value is None,
    Operator.GREATER: lambda value, values: _compared(value, values, 1),
    Operator.LESS: lambda value, values: _compared(value, values, -1),
}


@dataclass(frozen=True, slots=True)
class Selector:
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


class Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split(text)
        self.at = 0

    def _split(self, text: str) -> list[str]:
        tokens, at, text = [], 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                raise self.wrong(text[at:])
            tokens.append(found.group(1))
            at = found.end()
        return tokens

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def wrong(self, found: str) -> SelectorError:
        return SelectorError(f"unable to parse requirement: found '{found}' in {self.text!r}")

    def requirements(self) -> list[Requirement]:
        if not self.tokens:
            return []
        found = [self.requirement()]
        while self.peek():
            if self.take() != ",":
                raise self.wrong(self.tokens[self.at - 1])
            found.append(self.requirement())
        return found

    def requirement(self) -> Requirement:
        if self.peek() == "!":
            self.take()
            return Requirement(self.key(), Operator.ABSENT)
        key, sign = self.key(), self.peek()
        if sign in {"", ","}:
            return Requirement(key, Operator.EXISTS)
        self.take()
        if sign in {"=", "==", "!="}:
            return Requirement(key, Operator.NOT_IN if sign == "!=" else Operator.IN, frozenset({self.value()}))
        if sign in {"in", "notin"}:
            return Requirement(key, Operator(sign), self.values())
        if sign in {"<", ">"}:
            return Requirement(key, Operator(sign), frozenset({self.number()}))
        raise self.wrong(sign)

    def key(self) -> str:
        key = self.take()
        complaint = label_key_complaint(key)
        if complaint:
            raise SelectorError(f"unable to parse requirement: {complaint}")
        return key

    def value(self) -> str:
        if self.peek() in {"", ","}:
            return ""
        value = self.take()
        complaint = label_value_complaint(value)
        if complaint:
            raise SelectorError(f"unable to parse requirement: {complaint}")
        return value

    def number(self) -> str:
        value = self.take()
        if not re.fullmatch(r"[+-]?\d+", value):
            raise self.wrong(value)
        return value

    def values(self) -> frozenset[str]:
        if self.take() != "(":
            raise self.wrong(self.tokens[self.at - 1] if self.at <= len(self.tokens) else "")
        found = set()
        while True:
            found.add("" if self.peek() in {",", ")"} else self.value())
            mark = self.take()
            if mark == ")":
                return frozenset(found)
            if mark != ",":
                raise self.wrong(mark)


@lru_cache(maxsize=2048)
def parse(text: str) -> Selector:
    """:raises SelectorError: where the API server answers 400."""
    return Selector(tuple(Reader(text).requirements()))


EXPRESSIONS: Mapping[str, Operator] = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
    "Gt": Operator.GREATER,
    "Lt": Operator.LESS,
}


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector | None:
    """A metav1.LabelSelector as a test; None matches nothing, an empty one everything."""
    if selector is None:
        return None
    found = [
        Requirement(key, Operator.IN, frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for expression in selector.get("matchExpressions") or []:
        values = frozenset(expression.get("values") or [])
        found.append(Requirement(expression["key"], EXPRESSIONS[expression["operator"]], values))
    return Selector(tuple(found))
