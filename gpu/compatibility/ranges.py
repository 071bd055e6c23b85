"""Comparison of versions as numbers: 580.95.05 is 580.95.5, and 1.10 comes after 1.9. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpu.versions import driver_of

Numbers = tuple[int, ...]
LONGEST = 6
REMEMBERED = 4096  # texts: the same few versions are compared for every page


@lru_cache(REMEMBERED)
def numbers(text: str) -> Numbers:
    """Returns the leading dotted number: v1.33.4+rke2r1 → 1, 33, 4. Empty: there is none."""
    leading = driver_of(text)
    return tuple(int(part) for part in leading.split(".")) if leading else ()


@lru_cache(REMEMBERED)
def order(text: str) -> Numbers:
    """Returns the number padded for comparison: 26.7 equals 26.7.0."""
    parts = numbers(text)
    return parts + (0,) * (LONGEST - len(parts))


def is_older(one: str, other: str) -> bool:
    return order(one) < order(other)


def minor(text: str) -> Numbers:
    """Returns the minor version, as matrices list it: 1.33.4 → 1, 33."""
    return numbers(text)[:2]


def is_in_range(text: str, first_and_last: Sequence[str]) -> bool:
    """Tells whether a version lies in a range of minors, both ends included."""
    first, last = first_and_last
    return minor(first) <= minor(text) <= minor(last)


def is_of(version: str, family: str) -> bool:
    """Tells whether a version belongs to a family: 9.4 belongs to 9 and to 9.4."""
    wanted = numbers(family)
    return bool(wanted) and numbers(version)[: len(wanted)] == wanted


@dataclass(frozen=True)
class Range:
    """Versions from `since` on and before `before`. Blank: no bound."""

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
