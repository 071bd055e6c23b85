"""Patterns for lines that strangers write, thousands of patterns for a few lines. Pure.

A line that a pattern matches contains certain words of it. They are looked up first. That takes a fraction of a search,
and a pattern whose words never occur is never compiled.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from kube.boilerplate import without_boilerplate

LINE_READ = 1000  # characters of a line: the length of a stored Event
SHORTEST = 2  # characters of a word that is looked up
NeededWords = tuple[str, ...]  # one of them is in every line that matches

_QUANTIFIER = re.compile(r"[*+?][?+]?|\{(?P<least>\d*)(?:,\d*)?\}[?+]?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_NAMED = re.compile(r"\?P<\w+>|\?:|\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]*):")


@dataclass(frozen=True)
class LinePattern:
    """A regular expression that ignores case. Of a line, the first `LINE_READ` characters are searched.

    Sentences that tell nothing (`kube.boilerplate`) are left out.
    """

    pattern: str
    required: tuple[NeededWords, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "required", required_words(self.pattern))

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE)

    def search(self, line: str) -> re.Match[str] | None:
        read, lowered = _read(line)
        for words in self.required:
            if not any(word in lowered for word in words):
                return None
        return self.compiled.search(read)


@lru_cache(maxsize=256)
def _read(line: str) -> tuple[str, str]:
    read = without_boilerplate(line)[:LINE_READ]
    return read, read.lower()


def required_words(pattern: str) -> tuple[NeededWords, ...]:
    """Returns words such that a line which matches contains one of each tuple. Empty: none are known."""
    try:
        return tuple(_PatternSyntax(pattern).read())
    except (IndexError, _UnreadError):
        return ()


class _UnreadError(Exception):
    """A part of the pattern is not understood, so nothing is known of its lines."""


@dataclass
class _PatternSyntax:
    """Reads the syntax of `re` as far as this module needs it."""

    text: str
    at: int = 0

    def read(self) -> list[NeededWords]:
        found = self._alternatives()
        if self.at < len(self.text):
            raise _UnreadError
        return found

    def _alternatives(self) -> list[NeededWords]:
        branches = [self._sequence()]
        while self.at < len(self.text) and self.text[self.at] == "|":
            self.at += 1
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        best = [max(branch, key=_usefulness, default=None) for branch in branches]
        return [tuple(dict.fromkeys(word for words in best for word in words or ()))] if all(best) else []

    def _sequence(self) -> list[NeededWords]:
        found: list[NeededWords] = []
        run = ""
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            literal, inner = self._atom()
            least, is_repeated = self._quantifier()
            if literal and least:
                run += literal
            if not literal or is_repeated:
                found += _word(run)
                run = ""
            found += inner if least else []
        return [*found, *_word(run)]

    def _atom(self) -> tuple[str, list[NeededWords]]:
        """Returns the character that the next part stands for, or what a group requires."""
        character = self.text[self.at]
        if character == "(":
            return "", self._group()
        if character == "[":
            self.at = self._end_of(_CLASS)
            return "", []
        self.at += 2 if character == "\\" else 1
        if character != "\\":
            return "" if character in ".^$" else character.lower(), []
        escaped = self.text[self.at - 1]
        if escaped in "bBdDsSwWAZntr123456789":  # a class, a boundary, or the text of a group again
            return "", []
        if escaped.isalnum():
            raise _UnreadError
        return escaped, []

    def _group(self) -> list[NeededWords]:
        self.at += 1
        is_lookaround = self.text.startswith(("?=", "?!", "?<=", "?<!"), self.at)
        if is_lookaround:
            self.at += 3 if self.text[self.at + 1] == "<" else 2
        elif self.text[self.at] == "?":
            self.at = self._end_of(_NAMED)
        found = self._alternatives()
        if self.text[self.at] != ")":
            raise _UnreadError
        self.at += 1
        return [] if is_lookaround else found

    def _quantifier(self) -> tuple[bool, bool]:
        """Returns whether the part occurs at least once, and whether it may be repeated or absent."""
        found = _QUANTIFIER.match(self.text, self.at)
        if found is None:
            return True, False
        self.at = found.end()
        least = found["least"]
        return found[0][0] == "+" or bool(least and int(least)), True

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _UnreadError
        return found.end()


def _word(run: str) -> Iterator[NeededWords]:
    if len(run) >= SHORTEST:
        yield (run,)


def _usefulness(words: NeededWords) -> int:
    """Returns the length of the shortest: the one that is found most often."""
    return min(map(len, words))
