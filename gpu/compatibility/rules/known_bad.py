"""Evaluates known bad combinations."""

from collections.abc import Iterator

from gpu.compatibility.case import Case
from gpu.compatibility.conditions import all_conditions_hold
from gpu.compatibility.facts import Facts
from gpu.compatibility.verdicts import Support, Verdict

RULE = "known-bad"
WORDS = frozenset(
    {"operator", "kubernetes", "driver", "runtime", "product", "mig_manager", "cuda"}
)  # that a sentence may name


def evaluate(case: Case) -> Iterator[Verdict]:
    values = _fields_of(case.facts)
    for entry in case.matrix.known_bad:
        result = all_conditions_hold(entry.when, case.facts, case.matrix)
        if result:
            yield entry.verdict(RULE, entry.title, Support(entry.answer), entry.sentence.format(**values), entry.action)
        elif result is None and entry.unseen:
            action = f"Check whether this is enabled. If it is: {entry.action}"
            yield entry.verdict(RULE, entry.title, Support.UNKNOWN, entry.unseen.format(**values), action)


def _fields_of(facts: Facts) -> dict[str, str]:
    runtime = f"{facts.runtime_name} {facts.runtime_version}".strip()
    return {word: runtime if word == "runtime" else getattr(facts, word) for word in WORDS}
