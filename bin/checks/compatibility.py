#!/usr/bin/env python3
"""Fail when the compatibility matrix contradicts itself, cannot be read, or says something without a source."""

import re
import string
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from gpu.compatibility.conditions import KEYS, SWITCHES, VERSIONS  # noqa: E402
from gpu.compatibility.entries import Floor, KnownBad, Life, MatrixEntry, Platform, Runtime  # noqa: E402
from gpu.compatibility.matrix import Matrix, a_range, the_matrix  # noqa: E402
from gpu.compatibility.ranges import Range, is_of, is_older, minor, numbers  # noqa: E402
from gpu.compatibility.rules.known_bad import WORDS  # noqa: E402
from gpu.compatibility.systems import NAMED, NAMES  # noqa: E402
from gpu.compatibility.verdicts import Support  # noqa: E402

SOURCE = re.compile(r"https://[^\s]+|[\w.-]+/[\w.-]+:[\w./-]+@[\w.-]+")
STATES = {"supported", "deprecated", "ended"}
SYSTEMS = {name for name, _, _ in NAMES}
LIVING = {"kubernetes", "openshift", "containerd"}


def main() -> int:
    """Prints every problem; returns the exit status."""
    found = list(problems(the_matrix(), today=date.today()))  # noqa: DTZ011 -- a day is precise enough
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    return 1 if found else 0


def problems(matrix: Matrix, *, today: date) -> Iterator[str]:
    """Name each entry and what is wrong with it."""
    for entry in matrix.entries:
        yield from (f"{title_of(entry)}: {problem}" for problem in _entry_problems(entry, today))
    yield from _term_problems(matrix)
    for condition in (*matrix.floors, *matrix.known_bad):
        yield from (f"{condition.name}: {problem}" for problem in _condition_problems(condition, matrix))
    yield from _contradictions(matrix)


def title_of(entry: MatrixEntry) -> str:
    named = [str(getattr(entry, name)) for name in NAMING if getattr(entry, name, "")]
    return f"{type(entry).__name__} {' '.join(named)}"


NAMING = (
    "name",
    "of",
    "version",
    "series",
    "branch",
    "operator",
    "cuda",
    "kubelet",
    "os",
    "runtime",
    "kernel",
    "architecture",
)


def _entry_problems(entry: MatrixEntry, today: date) -> Iterator[str]:
    if not isinstance(entry.source, str) or not SOURCE.fullmatch(entry.source):
        yield f"its source is neither an https address nor repository:path@ref: {entry.source!r}"
    if type(entry.date) is not date:
        yield f"its date is no ISO day: {entry.date!r}"
    elif entry.date > today:
        yield f"its date is in the future: {entry.date}"
    for version in _versions(entry):
        if not isinstance(version, str) or not numbers(version):
            yield f"no version: {version!r}"
    for span in _ranges(entry):
        if not span.since or (span.before and not is_older(span.since, span.before)):
            yield f"an empty or unbounded range: {span}"
    for first, last in _spans(entry):
        if minor(first) > minor(last):
            yield f"its range is inverted: {first} to {last}"


def _versions(entry: MatrixEntry) -> list[Any]:
    single = [getattr(entry, name) for name in ("version", "driver", "series", "kernel") if getattr(entry, name, "")]
    optional = [getattr(entry, name) for name in ("ended_by", "recommended", "kubernetes") if _text(entry, name)]
    several = [each for name in ("versions", "kubernetes", "openshift", "drivers") for each in _several(entry, name)]
    bounds = [bound for span in _ranges(entry) for bound in (span.since, span.before) if bound]
    return [*single, *optional, *several, *bounds, *getattr(entry, "operands", {}).values()]


def _text(entry: MatrixEntry, name: str) -> bool:
    return isinstance(getattr(entry, name, None), str) and bool(getattr(entry, name))


def _several(entry: MatrixEntry, name: str) -> Sequence[Any]:
    value = getattr(entry, name, ())
    return value if isinstance(value, list) else ()


def _ranges(entry: MatrixEntry) -> list[Range]:
    return [value for name in ("operator", "cuda", "kubelet") if isinstance(value := getattr(entry, name, None), Range)]


def _spans(entry: MatrixEntry) -> Iterator[Sequence[str]]:
    if isinstance(entry, Platform):
        yield from (span for span in (entry.kubernetes, entry.openshift) if span)
        if bool(entry.kubernetes) == bool(entry.openshift):
            yield ("1", "0")  # neither, or both: it must say exactly one
    if isinstance(entry, Runtime) and entry.versions:
        yield entry.versions


def _term_problems(matrix: Matrix) -> Iterator[str]:
    for series in matrix.series:
        if series.state not in STATES:
            yield f"series {series.series}: no state of the life cycle: {series.state!r}"
        if (series.state == "ended") != bool(series.ended_by):
            yield f"series {series.series}: a series that ended, and only one, names the release that ended it"
    for release in matrix.releases:
        if matrix.branch_of(release.driver) is None:
            yield f"release {release.version}: the branch of its driver {release.driver} is in no entry"
    yield from (f"{title_of(life)}: {problem}" for life in matrix.lives for problem in _life_cycle_problems(life))
    yield from _system_problems(matrix)
    yield from _list_problems(matrix)


def _system_problems(matrix: Matrix) -> Iterator[str]:
    for entry in (*matrix.platforms, *matrix.runtimes, *matrix.precompiled, *matrix.kernels, *matrix.elsewhere):
        for system in [entry.os] if isinstance(entry.os, str) else entry.os:
            if system.split()[0] not in SYSTEMS:
                yield f"{title_of(entry)}: no system we can tell: {system}"
    for elsewhere in matrix.elsewhere:
        if elsewhere.answer not in {Support.UNSUPPORTED.value, Support.UNKNOWN.value}:
            yield f"{title_of(elsewhere)}: what NVIDIA does not list cannot be {elsewhere.answer!r}"
    for platform in matrix.platforms:
        for name in platform.distributions:
            if name and name not in NAMED:
                yield f"{title_of(platform)}: no distribution we can tell: {name}"


def _life_cycle_problems(life: Life) -> Iterator[str]:
    if life.of not in LIVING:
        yield f"no component with a known life cycle: {life.of}"
    if life.extended and (life.ends is None or life.extended <= life.ends):
        yield "what is extended ends later than what is not"


def _list_problems(matrix: Matrix) -> Iterator[str]:
    for entry in matrix.listed:
        if entry.recommended and entry.recommended not in entry.drivers:
            yield f"{title_of(entry)}: recommends {entry.recommended}, which it does not list"
        for driver in entry.drivers:
            if matrix.branch_of(driver) is None:
                yield f"{title_of(entry)}: the branch of {driver} is in no entry"


def _condition_problems(entry: Floor | KnownBad, matrix: Matrix) -> Iterator[str]:
    if not entry.when:
        yield "it has no condition, so that it is true of everything"
    yield from (f"{key} is no condition" for key in sorted(entry.when.keys() - KEYS))
    known = {name for products in matrix.products for name in products.names}
    yield from (f"no product we know: {name}" for name in entry.when.get("products", ()) if name not in known)
    for key in (*VERSIONS, "runtime"):
        yield from _bound_problems(key, entry.when.get(key))
    if isinstance(entry, KnownBad):
        yield from _sentence_problems(entry)


def _bound_problems(key: str, wanted: Any) -> Iterator[str]:
    if isinstance(wanted, list):
        yield from (f"{key}: no version: {build!r}" for build in wanted if not numbers(build))
    elif isinstance(wanted, Mapping):
        span = a_range(wanted)
        if unread := [bound for bound in (span.since, span.before) if bound and not numbers(bound)]:
            yield f"{key}: no version: {unread}"
        if span.since and span.before and not is_older(span.since, span.before):
            yield f"{key}: an empty range"


def _sentence_problems(entry: KnownBad) -> Iterator[str]:
    if entry.answer not in {Support.KNOWN_BAD.value, Support.UNKNOWN.value}:
        yield f"what is known to fail cannot be {entry.answer!r}"
    for text in (entry.sentence, entry.unseen):
        words = {name for _, name, _, _ in string.Formatter().parse(text) if name}
        yield from (f"its sentence names {word}, which is no fact" for word in sorted(words - WORDS))
    if entry.unseen and not entry.when.keys() & set(SWITCHES):
        yield "it says what it cannot see, but asks for no switch"


def _contradictions(matrix: Matrix) -> Iterator[str]:
    yield from _twice("release", (each.version for each in matrix.releases))
    yield from _twice("series", (each.series for each in matrix.series))
    yield from _twice("branch", (str(each.branch) for each in matrix.branches))
    yield from _twice("known bad", (each.name for each in matrix.known_bad))
    yield from _twice("floor", (each.name for each in matrix.floors))
    yield from _twice("life", (f"{each.of} {each.version}" for each in matrix.lives))
    yield from _twice("OpenShift", (each.version for each in matrix.openshift))
    yield from _twice("Kubernetes of OpenShift", (each.kubernetes for each in matrix.openshift))
    yield from _twice("product", (name for each in matrix.products for name in each.names))
    yield from _clash(matrix.platforms, _same_platform)
    yield from _clash(matrix.runtimes, lambda one, other: one.runtime == other.runtime)
    yield from _clash(matrix.precompiled, lambda one, other: (one.os, one.kernel) == (other.os, other.kernel))
    yield from _clash(matrix.kernels, lambda one, other: one.os == other.os)
    yield from _clash(matrix.listed, lambda *_: True)
    for early, late in combinations(matrix.skew, 2):
        if early.kubelet.overlaps(late.kubelet):
            yield f"two skews for one kubelet: {early.kubelet} and {late.kubelet}"
    for one, other in combinations(matrix.cuda, 2):
        if one.cuda.overlaps(other.cuda):
            yield f"two floors for one CUDA: {one.cuda} and {other.cuda}"


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"{what} {name}: twice"
        seen.add(name)


def _clash(entries: Sequence[Any], is_same: Callable[[Any, Any], bool]) -> Iterator[str]:
    """Two entries for the same thing and the same operator: whichever came first would win."""
    for one, other in combinations(entries, 2):
        if is_same(one, other) and one.operator.overlaps(other.operator):
            yield f"{title_of(one)} and {title_of(other)}: both are of the same operator"


def _same_platform(one: Platform, other: Platform) -> bool:
    if one.os != other.os or not set(one.distributions) & set(other.distributions):
        return False
    if not one.versions or not other.versions:
        return True
    return any(is_of(mine, theirs) or is_of(theirs, mine) for mine in one.versions for theirs in other.versions)


if __name__ == "__main__":
    sys.exit(main())
