"""Versions against bounds, as numbers: 580.95.05 is 580.95.5, and 1.10 comes after 1.9. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpu.versions import driver_of

Numbers = tuple[int, ...]
LONGEST = 6
REMEMBERED = 4096  # texts: a matrix is held against the same few versions with every page


@lru_cache(REMEMBERED)
def numbers(text: str) -> Numbers:
    """The dotted number a version begins with: v1.33.4+rke2r1 → 1, 33, 4. Empty: it begins with none."""
    leading = driver_of(text)
    return tuple(int(part) for part in leading.split(".")) if leading else ()


@lru_cache(REMEMBERED)
def order(text: str) -> Numbers:
    """For comparing: 26.7 and 26.7.0 are the same."""
    found = numbers(text)
    return found + (0,) * (LONGEST - len(found))


def is_older(one: str, other: str) -> bool:
    return order(one) < order(other)


def minor(text: str) -> Numbers:
    """1.33.4 → 1, 33: what matrices name."""
    return numbers(text)[:2]


def within(text: str, first_and_last: Sequence[str]) -> bool:
    """Whether a version lies in a range of minors, both ends included."""
    first, last = first_and_last
    return minor(first) <= minor(text) <= minor(last)


def is_of(version: str, family: str) -> bool:
    """Whether 9.4 is one of 9, or of 9.4."""
    wanted = numbers(family)
    return bool(wanted) and numbers(version)[: len(wanted)] == wanted


@dataclass(frozen=True)
class Range:
    """From a version on, and before another. Blank: no bound."""

    since: str = ""
    before: str = ""

    def __contains__(self, version: str) -> bool:
        if not numbers(version):
            return False
        if self.since and is_older(version, self.since):
            return False
        return not self.before or is_older(version, self.before)

    def overlaps(self, other: "Range") -> bool:
        starts_in_time = not other.before or not self.since or is_older(self.since, other.before)
        ends_in_time = not self.before or not other.since or is_older(other.since, self.before)
        return starts_in_time and ends_in_time
