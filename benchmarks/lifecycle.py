"""Whether sick nodes leave service and return, and well ones stay, in a simulated month with automatic quarantine.

bin/bench lifecycle [--seed N] [--nodes N] [--faults N] [--no-storm] [--no-breaker]

Findings, people and actors are simulated. Automatic quarantine, its breaker, cases and operations are the product's.
"""

import argparse
import secrets
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from unittest import mock

from benchmarks.crashing.run import make_ready
from benchmarks.figures import Figures, percentile
from demo.numbers import whole

if TYPE_CHECKING:
    from benchmarks.virtual_month.month import Month, Trouble

NODES, FAULTS = 1000, 500
STEPS = {"quarantined": "case.quarantined", "drained": "case.drained", "in_service": "case.probation"}
SETTLED = timedelta(days=5)  # before the end of the month: what began later may still be in work


@dataclass(frozen=True)
class Told:
    """A case, and what was wrong with its node."""

    node_uid: str
    trouble: "Trouble | None"
    is_automatic: bool
    state: str
    moves: Sequence[tuple[str, datetime]]
    moved_by: frozenset[str]
    repaired_by: str  # who answered its last repair; blank: its actor

    def first(self, verb: str, since: datetime) -> datetime | None:
        """Returns when it was there first."""
        return next((at for name, at in self.moves if name == verb and at >= since), None)


def main() -> None:
    asked = arguments()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    figures = Figures("lifecycle", {"seed": seed} | ({"plant": "breaker"} if asked.no_breaker else {}))
    figures.measure_reference()
    make_ready()
    from benchmarks.crashing.world import in_this_process
    from benchmarks.virtual_month.month import Month
    from maintenance.triggers import BreakerNumbers

    month = Month(seed, asked.nodes, asked.faults, has_storm=not asked.no_storm)
    planted = mock.patch.object(BreakerNumbers, "why_trip", "") if asked.no_breaker else nullcontext()
    began, used = time.monotonic(), time.process_time()
    with in_this_process(), planted:
        month.live()
    figures.beside("took_s", time.monotonic() - began, "s", cpu_s=round(time.process_time() - used, 1))
    report(figures, month, list(told_of(month)))
    figures.end()


def told_of(month: "Month") -> Iterator[Told]:
    from benchmarks.virtual_month.month import lives_in
    from maintenance.automatic import ACTOR
    from maintenance.models import NodeCase

    for case in NodeCase.objects.order_by("pk"):
        moves = list(case.moves.order_by("number"))
        troubles = list(lives_in(month.troubles, case.opened_at, case.node_uid))
        real = [each for each in troubles if each.fault.mended_by != "nobody"]
        repair = case.repairs.order_by("pk").last()
        yield Told(
            case.node_uid, next(iter([*real, *troubles]), None), case.opened_by == ACTOR, case.state,
            [(move.verb, move.at) for move in moves], frozenset(move.actor for move in moves),
            repair.answered_by if repair else "",
        )  # fmt: skip


def report(figures: Figures, month: "Month", cases: Sequence[Told]) -> None:
    automatic = [case for case in cases if case.is_automatic]
    of_storm = [case for case in automatic if case.trouble and case.trouble.fault.mended_by == "driver"]
    wrong = [case for case in automatic if case.trouble is None or case.trouble.fault.mended_by == "nobody"]
    real = [each for each in month.troubles if each.fault.mended_by in ("reboot", "part")]
    figures.beside("faults", len(month.troubles), "faults", of_nodes=len(real))
    figures.beside("cases", len(cases), "cases", automatic=len(automatic))
    if automatic:
        figures.at_most("wrong_quarantine_ratio", len(wrong) / len(automatic), 0.01, "", of=len(automatic))
    else:
        figures.lacks("wrong_quarantine_ratio", "no automatic case; let more faults come")
    figures.at_most("lost_nodes", len(list(lost(real, cases))), 0, "nodes", of=len(real))
    if month.storm:
        trips = [at for at in month.trips if month.storm[0] <= at <= month.storm[1]]
        figures.at_most("false_automatic", len(of_storm), 0, "nodes")
        figures.at_least("breakers_opened_in_storm", len(trips), 1, "breakers", others=len(month.trips) - len(trips))
    for name, verb in STEPS.items():
        say_minutes(figures, name, verb, cases)
    say_without_people(figures, cases)


def lost(real: Iterable["Trouble"], cases: Sequence[Told]) -> Iterator["Trouble"]:
    """Yields the faults after which the node did not return into service."""
    from benchmarks.virtual_month.month import BEGINS, MONTH

    for each in real:
        its = (case for case in cases if case.node_uid == each.node.uid)
        has_returned = any(case.first(STEPS["in_service"], each.begins) for case in its)
        if each.begins < BEGINS + MONTH - SETTLED and not has_returned:
            yield each


def say_minutes(figures: Figures, name: str, verb: str, cases: Sequence[Told]) -> None:
    """Of all cases of sick nodes, whoever opened them: from the begin of the fault."""
    minutes = [
        (at - case.trouble.begins).total_seconds() / 60
        for case in cases
        if case.trouble and case.trouble.fault.mended_by in ("reboot", "part")
        if (at := case.first(verb, case.trouble.begins))
    ]
    if minutes:
        figures.beside(f"minutes_to_{name}_median", statistics.median(minutes), "minutes", of=len(minutes))
        figures.beside(f"minutes_to_{name}_p90", percentile(minutes, 0.9), "minutes")


def say_without_people(figures: Figures, cases: Sequence[Told]) -> None:
    """With its switches on, the product drains, reboots, tests and returns a node; a doubt waits for a person."""
    from maintenance.automatic import ACTOR
    from maintenance.lifecycle import ENGINE, CaseState

    closed = [
        case for case in cases
        if case.state == CaseState.CLOSED and case.trouble and case.trouble.fault.mended_by == "reboot"
    ]  # fmt: skip
    if not closed:
        figures.lacks("closed_without_a_person_ratio", "no closed case with an actor; let more faults come")
        return
    alone = [case for case in closed if case.moved_by <= {ACTOR, ENGINE}]
    unanswered = [case for case in closed if not case.repaired_by]
    figures.at_least("closed_without_a_person_ratio", len(alone) / len(closed), 0.5, "", of=len(closed))
    figures.beside("repaired_without_a_person_ratio", len(unanswered) / len(closed), "", of=len(closed))


def arguments() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="bin/bench lifecycle", description=__doc__)
    words.add_argument("--seed", type=whole(0, 10**9), metavar="N")
    words.add_argument("--nodes", type=whole(20, 10_000), default=NODES, metavar="N")
    words.add_argument("--faults", type=whole(1, 100_000), default=FAULTS, metavar="N")
    words.add_argument("--no-storm", action="store_true", help="without the driver that breaks 30 %% of the nodes")
    words.add_argument("--no-breaker", action="store_true", help="take the breaker out: the bench must fail")
    return words.parse_args()


if __name__ == "__main__":
    main()
