"""One combination before the judges. Pure."""

from dataclasses import dataclass
from datetime import date

from fleet.compatibility.facts import Facts
from fleet.compatibility.matrix import Matrix


@dataclass(frozen=True)
class Case:
    facts: Facts
    matrix: Matrix
    today: date
