"""The number of steps that a regular expression takes for the worst line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from re import _constants as codes
from re import _parser as parser
from typing import Any

CHARACTER = {codes.ANY, codes.IN, codes.LITERAL, codes.NOT_LITERAL}
CATEGORIES = {
    codes.CATEGORY_WORD: r"\w", codes.CATEGORY_NOT_WORD: r"\W", codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S", codes.CATEGORY_DIGIT: r"\d", codes.CATEGORY_NOT_DIGIT: r"\D",
}  # fmt: skip
SAMPLES = "a0 " + "".join(map(chr, range(33, 127)))
SHORT = 8  # characters of a repetition that count as none


@dataclass(frozen=True)
class _Path:
    """One way through a pattern."""

    length: int  # characters of the line
    prefix: str = ""  # the text before the first repetition, which begins a try
    is_in_prefix: bool = True
    begins_a_word: bool = False
    is_anchored: bool = False
    wide: tuple[int, ...] = ()  # ends that each repetition tries
    others: int = 1  # tries of short repetitions and of lookaheads
    literals: int = 0  # characters since the last repetition: it tries only places that have them

    @property
    def steps(self) -> int:
        starts = 1 if self.is_anchored else self.length // max(1, len(self.prefix))
        return starts * prod(self.wide) * self.others

    def with_repetition(self, ends: int) -> "_Path":
        if ends <= SHORT:
            return replace(self, others=self.others * ends, is_in_prefix=self.is_in_prefix and ends <= 2)
        earlier = self.wide
        if earlier and self.literals > 1:
            earlier = (*earlier[:-1], -(-earlier[-1] // self.literals))
        return replace(self, wide=(*earlier, ends), literals=0, is_in_prefix=False)


def steps_of_search(pattern: str, length: int) -> int:
    """An upper bound of the steps of a search in a line of some length, without that of a single character."""
    return max(path.steps for path in _paths(parser.parse(pattern, re.IGNORECASE), _Path(length)))


def _paths(sequence: Sequence[tuple[Any, Any]], first: _Path) -> list[_Path]:
    paths = [first]
    for code, given in sequence:
        worst: dict[_Path, _Path] = {}
        for path in (after for before in paths for after in _after(code, given, before)):
            alike = replace(path, wide=(), others=1)
            if alike not in worst or worst[alike].steps < path.steps:
                worst[alike] = path
        paths = list(worst.values())
    return paths


def _after(code: Any, given: Any, path: _Path) -> Iterator[_Path]:
    if code in (codes.LITERAL, codes.IN, codes.NOT_LITERAL, codes.ANY):
        is_literal = code is codes.LITERAL
        text = chr(given).lower() if is_literal else next(each for each in SAMPLES if _accepts((code, given), each))
        prefix = path.prefix + text if path.is_in_prefix else path.prefix
        yield replace(path, prefix=prefix, literals=path.literals + is_literal)
    elif code is codes.AT and path.is_in_prefix and not path.prefix:
        is_anchored = path.is_anchored or given in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING)
        yield replace(path, is_anchored=is_anchored, begins_a_word=given is codes.AT_BOUNDARY)
    elif code is codes.BRANCH:
        for branch in given[1]:
            yield from _paths(branch, path)
    elif code is codes.SUBPATTERN:
        yield from _paths(given[3], path)
    elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
        yield from _repeated(*given, path)
    else:
        yield path  # a lookahead is one more search from the same place


def _repeated(least: int, most: int, items: Any, path: _Path) -> Iterator[_Path]:
    if len(items) == 1 and items[0][0] in CHARACTER:
        once = next(_after(*items[0], path)) if least else path
        if most is not codes.MAXREPEAT:
            yield once.with_repetition(min(most, path.length) - least + 1)
        else:
            # One that stops at the text of the prefix tries each place of the line for one try only.
            is_split = path.begins_a_word and not path.wide and not _accepts(items[0], " ")
            is_open = not is_split and all(_accepts(items[0], each) for each in path.prefix)
            yield once.with_repetition(path.length if is_open else SHORT + 1)
        return
    for inner in _paths(items, path):
        yield inner if most == 1 else inner.with_repetition(min(most, path.length) - least + 1)
    if not least:
        yield path


def _accepts(item: tuple[Any, Any], text: str) -> bool:
    code, given = item
    if code is codes.ANY:
        return True
    if code is codes.LITERAL:
        return chr(given).lower() == text
    if code is codes.NOT_LITERAL:
        return chr(given).lower() != text
    is_negated, is_in = False, False
    for kind, value in given:
        if kind is codes.NEGATE:
            is_negated = True
        elif kind is codes.LITERAL:
            is_in |= chr(value).lower() == text
        elif kind is codes.RANGE:
            is_in |= value[0] <= ord(text) <= value[1] or value[0] <= ord(text.upper()) <= value[1]
        elif kind is codes.CATEGORY:
            is_in |= bool(re.match(CATEGORIES[value], text))
    return is_in != is_negated
