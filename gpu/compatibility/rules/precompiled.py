"""Evaluates a precompiled driver, which exists only for some kernels and branches."""

from collections.abc import Iterator, Sequence

from gpu.compatibility.case import Case
from gpu.compatibility.conditions import is_system
from gpu.compatibility.entries import Precompiled
from gpu.compatibility.facts import Facts
from gpu.compatibility.ranges import is_of, order
from gpu.compatibility.verdicts import Support, Verdict

RULE = "precompiled"
LOOK_UP = "Check whether the registry has an image for exactly this kernel, or compile on the node."


def evaluate(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if not facts.is_precompiled or not facts.operator:
        return
    entries = [entry for entry in case.matrix.precompiled if facts.operator in entry.operator]
    if not entries:
        sentence = f"The matrix has no list of precompiled drivers for operator {facts.operator}."
        yield Verdict(RULE, "Precompiled driver", Support.UNKNOWN, sentence, LOOK_UP)
    elif not facts.kernel or not facts.driver:
        sentence = "The kernel or the driver is unknown, so the precompiled images cannot be compared."
        yield Verdict(RULE, "Precompiled driver", Support.UNKNOWN, sentence, LOOK_UP)
    else:
        yield _compare_images(facts, entries)


def _compare_images(facts: Facts, entries: Sequence[Precompiled]) -> Verdict:
    branch = order(facts.driver)[0]
    subject = f"Precompiled R{branch}, kernel {facts.kernel}"
    fitting = [each for each in entries if is_system(facts.system, [each.os]) and is_of(facts.kernel, each.kernel)]
    for entry in fitting:
        if branch in entry.branches:
            sentence = f"NVIDIA validated precompiled R{branch} on {facts.system.title}, kernel {entry.kernel}."
            return entry.verdict(RULE, subject, Support.SUPPORTED, sentence)
    known = ", ".join(f"R{each}" for entry in fitting for each in entry.branches) or "none"
    sentence = (
        f"NVIDIA validated no precompiled R{branch} on {facts.system.title}, kernel {facts.kernel}. Known: {known}."
    )
    return (fitting or entries)[0].verdict(RULE, subject, Support.UNSUPPORTED, sentence, LOOK_UP)
