"""A day in numbers that fit a JSON line, and what is said of each that was missed. No Django: it goes by a pipe."""

from dataclasses import dataclass, field

from benchmarks.figures import Figures

FOUND_RATIO, WRONG_RATIO, FALSE_A_DAY = 0.99, 0.02, 1.0
QUIET_CPU_RATIO = 0.05  # of a core
SHOWN = 40  # of what was missed and false


@dataclass(frozen=True)
class Trouble:
    """`number`: of the plant, which planted alone shows it again. None: nothing was planted there."""

    figure: str
    number: int | None
    says: str


@dataclass(frozen=True)
class Told:
    nodes: int
    hours: float
    planted: int  # troubles that were visible
    harmless: int
    in_vain: int  # planted, and over before they showed, or had to be found
    missed: int
    wrong: int
    doubled: int
    false: int
    notes: int
    cpu_s: float
    quiet_cpu_ratio: float
    troubles: tuple[Trouble, ...] = field(default_factory=tuple)

    @property
    def node_days(self) -> float:
        return self.nodes * self.hours / 24


def say(figures: Figures, told: Told) -> None:
    found = told.planted - told.missed
    figures.beside("planted", told.planted, "faults", harmless=told.harmless, in_vain=told.in_vain)
    figures.at_least("found_ratio", found / max(1, told.planted), FOUND_RATIO, "", missed=told.missed)
    figures.at_most("wrong_cause_ratio", told.wrong / max(1, found), WRONG_RATIO, "", wrong=told.wrong)
    rate = told.false / told.node_days * 1000
    figures.at_most("false_findings_per_1000_node_days", rate, FALSE_A_DAY, "findings", false=told.false)
    figures.at_most("duplicate_findings", told.doubled, 0, "findings")
    figures.at_most("quiet_cpu_ratio", round(told.quiet_cpu_ratio, 4), QUIET_CPU_RATIO, "")
    figures.beside("day_cpu_s", round(told.cpu_s, 1), "s", notes=told.notes)
