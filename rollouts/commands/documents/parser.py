"""Parses a plan's document strictly; each problem names its field by path, such as `stages[1].gates.soak.duration`.

Pure.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from edges.documents import BadDocument
from rollouts.commands.documents.lengths import WRITE_IT, read_length
from rollouts.commands.documents.values import values
from rollouts.commands.refusals import BadPlan
from rollouts.gates import GATES
from rollouts.gates.approval import GROUP, LONGEST_GROUP, MOST_OF_ONE, Groups
from rollouts.gates.options import LONGEST_TEXT, BadGate, is_text, kinds_of, read_gates, wire_name

MOST_STAGES = 50
MOST_PROBLEMS = 50  # problems that one answer lists
MOST_NODES = 100_000
KEY_MOST = 2**63 - 1
LONGEST = {"cluster": 63, "pool": 63, "object.kind": 63, "object.name": 253, "from": 64, "to": 64, "title": 200,
           "name": 100, "kind": 16, "selector": 1000, "sick_nodes_reason": 1000}  # fmt: skip
NO_TEXT = "The text contains a character that cannot be stored."
KEYS = ("plan", "revision", "cluster", "object", "from", "to", "title", "cordon_affected", "stages")
STAGE_KEYS = ("name", "kind", "pool", "selector", "count", "max_unavailable", "timeout", "sick_nodes_reason", "gates")
Options = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class StageDocument:
    name: str
    kind: str
    pool: str = ""  # its name; blank: any node of the object
    selector: str = ""
    count: int | None = None  # None: every node that is left
    max_unavailable: int = 1
    timeout_s: int = 3600
    sick_nodes_reason: str = ""  # why it takes sick nodes; blank: it leaves them out
    gate_options: Options | None = None  # in the form that plans store; None: the gates of its pool


@dataclass(frozen=True)
class PlanDocument:
    cluster: str
    kind: str
    name: str
    to_version: str
    stages: tuple[StageDocument, ...]
    title: str = ""
    cordon_affected: bool = False
    from_version: str = ""  # blank: the present version of the object
    plan: int | None = None  # the draft that it was read from
    revision: int | None = None  # and which of that draft's


def parse_plan_document(text: str | bytes) -> PlanDocument:
    """Parses the document.

    :raises BadPlan: with every problem, each with its path or line
    """
    content, reader = _content(text), _Reader()
    document = reader.document(content)
    if reader.problems:
        raise BadPlan(*reader.told)
    return document


def parse_gates(text: str) -> Options:
    """Parses the gates of a stage, as plans store them. Blank: none.

    :raises BadPlan: with every problem, each with its path or line
    """
    content, reader = _content(text) or {}, _Reader()
    gates = reader.gates(content, "gates")
    if reader.problems:
        raise BadPlan(*reader.told)
    return gates


def _content(text: str | bytes) -> Any:
    """:raises BadPlan: when it cannot be read"""
    try:
        return values(text)
    except BadDocument as refusal:
        raise BadPlan(*((f"line {each.line}", each.sentence) for each in refusal.lines)) from refusal


class _Reader:
    """Continues after a problem, so that all problems are reported at once."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str]] = []

    @property
    def told(self) -> list[tuple[str, str]]:
        left = len(self.problems) - MOST_PROBLEMS
        more = [("", f"{left} more fields are wrong.")] if left > 0 else []
        return [*self.problems[:MOST_PROBLEMS], *more]

    def document(self, content: Any) -> PlanDocument:
        given = self.mapping(content, "", KEYS)
        what = self.mapping(given["object"], "object", ("kind", "name")) if "object" in given else {}
        for key in ("cluster", "object", "to", "stages"):
            if isinstance(content, dict) and key not in given:
                self.wrong(key, "A plan needs this.")
        if "object" in given and "name" not in what:
            self.wrong("object.name", "Name the driver object.")
        return PlanDocument(
            cluster=self.text(given, "cluster"),
            kind=self.text(what, "kind", "object") or "NVIDIADriver",
            name=self.text(what, "name", "object"),
            to_version=self.text(given, "to"),
            stages=tuple(self.stages(given.get("stages", []))),
            title=self.text(given, "title"),
            cordon_affected=self.switch(given.get("cordon_affected", False), "cordon_affected"),
            from_version=self.text(given, "from"),
            plan=self.whole(given, "plan", most=KEY_MOST),
            revision=self.whole(given, "revision", most=2**31 - 1),
        )

    def stages(self, given: Any) -> Iterator[StageDocument]:
        if not isinstance(given, list):
            self.wrong("stages", "Must be a list. Each stage begins with “- name:”.")
        elif len(given) > MOST_STAGES:
            self.wrong("stages", f"A plan has at most {MOST_STAGES} stages; this one has {len(given)}.")
        else:
            for number, each in enumerate(given):
                yield self.stage(each, f"stages[{number}]")

    def stage(self, content: Any, at: str) -> StageDocument:
        given = self.mapping(content, at, STAGE_KEYS)
        for key in ("name", "kind"):
            if isinstance(content, dict) and key not in given:
                self.wrong(f"{at}.{key}", "Each stage needs this field.")
        timeout = self.length(given["timeout"], f"{at}.timeout") if given.get("timeout") is not None else 3600
        if timeout != int(timeout):
            self.wrong(f"{at}.timeout", "Must be whole seconds.")
        written = given.get("gates")
        return StageDocument(
            name=self.text(given, "name", at),
            kind=self.text(given, "kind", at),
            pool=self.text(given, "pool", at),
            selector=self.text(given, "selector", at),
            count=self.whole(given, "count", at=at),
            max_unavailable=self.whole(given, "max_unavailable", at=at) or 1,
            timeout_s=int(timeout),
            sick_nodes_reason=self.text(given, "sick_nodes_reason", at),
            gate_options=None if written is None else self.gates(written, f"{at}.gates"),
        )

    def gates(self, given: Any, at: str) -> Options:
        return {
            key: self.gate(key, options, f"{at}.{key}")
            for key, options in self.mapping(given, at, tuple(GATES)).items()
        }

    def gate(self, key: str, content: Any, at: str) -> dict[str, Any]:
        """Returns the gate's options as plans store them: seconds, under their REST names."""
        before = len(self.problems)
        kinds = kinds_of(GATES[key])
        given = self.mapping({} if content is None else content, at, tuple(kinds))
        options = {wire_name(n, kinds[n]): self.option(value, kinds[n], f"{at}.{n}") for n, value in given.items()}
        if len(self.problems) == before:
            try:
                read_gates({key: options})
            except BadGate as refusal:
                self.wrong(at, str(refusal))
        return options

    def option(self, value: Any, kind: type, at: str) -> Any:
        if kind is timedelta:
            return self.length(value, at)
        if kind == Groups:
            return self.groups(value, at)
        if kind is bool:
            return self.switch(value, at)
        if kind in LONGEST_TEXT and (not isinstance(value, str) or len(value) > LONGEST_TEXT[kind]):
            self.wrong(at, f"Must be text of at most {LONGEST_TEXT[kind]} characters.")
        elif kind in LONGEST_TEXT and not is_text(value):
            self.wrong(at, NO_TEXT)
        elif kind is float and not _is_number(value):
            self.wrong(at, "Must be a number of 0 or more.")
        elif kind is int and not _is_whole(value, 0, 10**9):
            self.wrong(at, "Must be a whole number of 0 or more.")
        return value

    def switch(self, value: Any, at: str) -> bool:
        if not isinstance(value, bool):
            self.wrong(at, "Must be true or false.")
        return value is True

    def groups(self, content: Any, at: str) -> dict[str, Any]:
        """Returns the groups; each invalid entry is a problem of its own."""
        if not isinstance(content, dict):
            self.wrong(at, "Must be “group: number of people”, such as sre: 1.")
            return {}
        for group, number in content.items():
            if not GROUP.fullmatch(group):
                self.wrong(at, f"A group's name is one word of at most {LONGEST_GROUP} characters.")
            elif not _is_whole(number, 1, MOST_OF_ONE):
                self.wrong(f"{at}.{group}", f"Must be a whole number from 1 to {MOST_OF_ONE}.")
        return content

    def length(self, value: Any, at: str) -> float:
        seconds = read_length(value) if isinstance(value, str) else None
        if seconds is None:
            shown = f"“{value[:40]}”" if isinstance(value, str) and is_text(value) else "This"
            self.wrong(at, f"{shown} is not a duration. {WRITE_IT}")
        return seconds or 0

    def mapping(self, content: Any, at: str, known: tuple[str, ...]) -> dict[str, Any]:
        there = ", ".join(known)
        if not isinstance(content, dict):
            self.wrong(at, f"Must be “key: value”, with the keys {there}.")
            return {}
        for key in content.keys() - known:
            self.wrong(f"{at}.{key[:40]}".removeprefix("."), f"Unknown field. Known fields: {there}.")
        return {key: value for key, value in content.items() if key in known}

    def text(self, given: Mapping[str, Any], key: str, at: str = "") -> str:
        value = given.get(key)
        path = f"{at}.{key}".removeprefix(".")
        longest = LONGEST[path if path in LONGEST else key]
        if value is None:
            return ""
        if not isinstance(value, str):
            self.wrong(path, "Must be text. Write it in quotes.")
        elif len(value) > longest:
            self.wrong(path, f"Must have at most {longest} characters.")
        elif not is_text(value):
            self.wrong(path, NO_TEXT)
        else:
            return value.strip()
        return ""

    def whole(self, given: Mapping[str, Any], key: str, *, at: str = "", most: int = MOST_NODES) -> int | None:
        value = given.get(key)
        if value is None or _is_whole(value, 1, most):
            return value
        self.wrong(f"{at}.{key}".removeprefix("."), f"Must be a whole number from 1 to {most}.")
        return None

    def wrong(self, at: str, sentence: str) -> None:
        self.problems.append((at, sentence))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
