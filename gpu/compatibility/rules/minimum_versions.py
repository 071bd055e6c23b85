"""Evaluates the minimum driver and Kubernetes of a GPU or an installation method."""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.conditions import all_conditions_hold
from gpu.compatibility.entries import Floor
from gpu.compatibility.ranges import is_older
from gpu.compatibility.verdicts import Support, Verdict

RULE = "floor"


def evaluate(case: Case) -> Iterator[Verdict]:
    for entry in case.matrix.floors:
        if all_conditions_hold(entry.when, case.facts, case.matrix):
            yield from _compare_version(entry, "driver", entry.driver, case.facts.driver)
            yield from _compare_version(entry, "Kubernetes", entry.kubernetes, case.facts.kubernetes)


def _compare_version(entry: Floor, what: str, floor: str, found: str) -> Iterator[Verdict]:
    if not floor:
        return
    subject = f"{entry.name}, {what} {found}".strip()
    needs = f"{entry.name} needs {what} {floor} or newer"
    if not found:
        yield entry.verdict(RULE, subject, Support.UNKNOWN, f"{needs}; the version here is unknown.")
    elif is_older(found, floor):
        sentence = f"{needs}; {found} runs here."
        yield entry.verdict(RULE, subject, Support.KNOWN_BAD, sentence, f"Update to {what} {floor} or newer.")
    else:
        yield entry.verdict(RULE, subject, Support.SUPPORTED, f"{needs}. This is fulfilled.")
