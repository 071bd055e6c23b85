"""A driver that compiles on the node, and the kernel that it compiles for.

NVIDIA names kernels of some systems only: of the others nothing is said, and nothing is judged.
"""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.conditions import is_system
from gpu.compatibility.ranges import is_of
from gpu.compatibility.verdicts import Support, Verdict

RULE = "kernel"
MAY = "It may compile all the same; where it does not, NVIDIA will not look at it. Boot one of those."


def judge(case: Case) -> Iterator[Verdict]:
    facts = case.facts
    if not (facts.driver and facts.kernel) or facts.is_precompiled or facts.is_preinstalled:
        return
    subject = f"Driver {facts.driver}, kernel {facts.kernel}"
    for entry in case.matrix.kernels:
        if facts.operator not in entry.operator or not is_system(facts.system, [entry.os]):
            continue
        known = f"{', '.join(entry.kernels)} on {facts.system.title}"
        if any(is_of(facts.kernel, kernel) for kernel in entry.kernels):
            sentence = f"NVIDIA's driver containers support kernels {known}."
            yield entry.says(RULE, subject, Support.SUPPORTED, sentence)
        else:
            sentence = f"NVIDIA's driver containers support kernels {known}; {facts.kernel} is none of them."
            yield entry.says(RULE, subject, Support.UNSUPPORTED, sentence, MAY)
