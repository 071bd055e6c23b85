"""What fits together and what is known not to: operator, Kubernetes, runtime, system, driver, GPU. Pure.

The facts are data with a source and a date (`data/`); a question is one small file (`judges/`). What the matrix
does not say is unknown, and unknown is never supported.
"""

from datetime import date

from gpu.compatibility.case import Case
from gpu.compatibility.facts import Facts
from gpu.compatibility.judges import JUDGES
from gpu.compatibility.matrix import Matrix, the_matrix
from gpu.compatibility.verdicts import Support, Verdict

__all__ = ["Facts", "Matrix", "Support", "Verdict", "judge", "the_matrix"]


def judge(facts: Facts, *, today: date, matrix: Matrix | None = None) -> list[Verdict]:
    """Every answer about one combination, the worst first."""
    case = Case(facts, matrix or the_matrix(), today)
    found = [verdict for ask in JUDGES.values() for verdict in ask(case)]
    return sorted(found, key=lambda verdict: verdict.place)
