"""Evaluates a driver that compiles on the node against the node's kernel.

NVIDIA lists kernels of some systems only. Other systems get no verdict.
"""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.conditions import is_system
from gpu.compatibility.ranges import is_of
from gpu.compatibility.verdicts import Support, Verdict

RULE = "kernel"
MAY = "It may still compile, but NVIDIA does not support it. Boot a listed kernel."


def evaluate(case: Case) -> Iterator[Verdict]:
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
            yield entry.verdict(RULE, subject, Support.SUPPORTED, sentence)
        else:
            sentence = f"NVIDIA's driver containers support kernels {known}; {facts.kernel} is not listed."
            yield entry.verdict(RULE, subject, Support.UNSUPPORTED, sentence, MAY)
