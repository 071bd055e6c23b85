"""Supported and known bad combinations of operator, Kubernetes, runtime, system, driver and GPU. Pure.

The facts are data with source and date (`data/`); each question is one small file (`rules/`). A combination outside
the matrix is unknown, and unknown never counts as supported.
"""

from datetime import date

from gpu.compatibility.case import Case
from gpu.compatibility.facts import Facts
from gpu.compatibility.matrix import Matrix, the_matrix
from gpu.compatibility.rules import RULES
from gpu.compatibility.verdicts import Support, Verdict

__all__ = ["Facts", "Matrix", "Support", "Verdict", "evaluate", "the_matrix"]


def evaluate(facts: Facts, *, today: date, matrix: Matrix | None = None) -> list[Verdict]:
    """Returns the verdicts about one combination, the worst first."""
    case = Case(facts, matrix or the_matrix(), today)
    verdicts = [verdict for ask in RULES.values() for verdict in ask(case)]
    return sorted(verdicts, key=lambda verdict: verdict.place)
