"""How early rollouts with a fault stop, and how often healthy ones do: seeded rehearsals in virtual time.

bin/bench safety [--seed N] [--rollouts N] [--rollout K] [--usual] [--faults FILE] [--processes N] [--plot FILE]

The gates and decisions are the product's own; the fleets, the operator and the faults are `rollouts.rehearsal`.
"""

import argparse
import os
import resource
import secrets
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import Figures
from benchmarks.safety_plot import safety_plot
from demo.numbers import whole

if TYPE_CHECKING:
    from benchmarks.rehearsing.scenarios import Played

ROLLOUTS, TOLD_EVERY = 510, 50


def main() -> None:
    asked = arguments()
    if asked.faults:
        check_faults(asked.faults)
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    if asked.rollout is not None:
        set_up()
        print(played(seed, asked.usual, asked.faults, asked.rollout))
        return
    figures = Figures("safety", {"seed": seed, "gates": "usual" if asked.usual else "all"})
    figures.measure_reference()
    began = time.monotonic()
    with ProcessPoolExecutor(asked.processes, initializer=set_up) as pool:
        rollouts = []
        for one in pool.map(partial(played, seed, asked.usual, asked.faults), range(asked.rollouts), chunksize=4):
            rollouts.append(one)
            if len(rollouts) % TOLD_EVERY == 0:
                print(f"{len(rollouts)} of {asked.rollouts} rollouts", file=sys.stderr, flush=True)
    figures.at_most("minutes", (time.monotonic() - began) / 60, 15, "min")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures.at_most("cpu_s_a_rollout", (spent.ru_utime + spent.ru_stime) / len(rollouts), 3.4, "s")
    report(figures, rollouts)
    if asked.plot:
        conditions = f"{len(rollouts)} rehearsed rollouts, seed {seed}; the operator with its defaults"
        asked.plot.write_text(safety_plot(*broken_by_fault(rollouts), conditions), encoding="utf-8")
    figures.end()


def check_faults(path: Path) -> None:
    """:raises SystemExit: for a file of faults that cannot be read."""
    set_up()
    from rollouts.rehearsal.faults import read_faults

    try:
        read_faults(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"The faults cannot be read: {error}") from error


def set_up() -> None:
    """Sets Django up: the tables of rules and metrics are its apps'. No database is asked."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    import django

    django.setup()


def played(seed: int, only_usual_gates: bool, faults: Path | None, number: int) -> "Played":  # noqa: FBT001 (of `partial`)
    from benchmarks.rehearsing.scenarios import play
    from rollouts.rehearsal.faults import FAULTS, read_faults

    given = read_faults(faults) if faults else FAULTS
    return play(seed, number, faults=given, only_usual_gates=only_usual_gates)


def report(figures: Figures, rollouts: Sequence["Played"]) -> None:
    from benchmarks.rehearsing.scenarios import HEALTHY

    healthy = [one for one in rollouts if one.fault == HEALTHY]
    faulty = [one for one in rollouts if one.fault != HEALTHY]
    detectable = [one for one in faulty if one.is_detectable]
    missed = [one for one in detectable if one.has_passed_canary]
    halted = [one for one in healthy if not one.outcome.is_complete]
    provable = [one for one in faulty if one.may_be_proved]
    at_random = [one for one in faulty if one.is_random and one.outcome.suspects.failed]
    after_sign = [one.outcome.released_after_sign for one in faulty if one.outcome.first_sign is not None]
    figures.beside("rollouts", len(rollouts), "rollouts", healthy=len(healthy))
    figures.beside("detectable", len(detectable), "rollouts", of=len(faulty))
    say_ratio(figures, "stopped_in_canary_ratio", detectable, missed, 0.99)
    figures.at_most("bad_stages_passed", len(missed), 0, "stages")
    figures.beside(
        "nodes_after_first_bad_sample", statistics.median(after_sign or [0]), "nodes", most=max(after_sign or [0])
    )
    figures.at_most("false_halt_ratio", len(halted) / max(1, len(healthy)), 0.02, "", by=by_gate(halted))
    stuck = [one for one in rollouts if one.is_stuck]
    figures.at_most("stuck_rollouts", len(stuck), 0, "rollouts", by=by_fault(stuck))
    wrong = [one for one in provable if not one.is_right_suspect]
    say_ratio(figures, "right_suspect_ratio", provable, wrong, 0.95)
    named = [one for one in at_random if one.names_a_cause]
    say_ratio(figures, "no_suspect_on_random_ratio", at_random, named, 0.95)
    broken, alone = broken_by_fault(rollouts)
    figures.beside("nodes_broken", broken.total(), "nodes", by=broken)
    figures.beside("operator_alone_nodes_broken", alone.total(), "nodes", by=alone)
    for one in [*missed, *halted]:
        print(f"rollout {one.number}: {one.fault}. {one.outcome.stopped_by}", file=sys.stderr)
    for one in stuck:
        print(f"rollout {one.number}: {one.fault}. It neither ends nor asks a person.", file=sys.stderr)


def say_ratio(
    figures: Figures, name: str, every: Sequence["Played"], without: Sequence["Played"], target: float
) -> None:
    """Says the share of the others. Without a single rollout it is no pass."""
    if not every:
        figures.lacks(name, "no such rollout; play more of them")
        return
    figures.at_least(name, 1 - len(without) / len(every), target, "", of=len(every), without=by_fault(without))


def broken_by_fault(rollouts: Iterable["Played"]) -> tuple[Counter[str], Counter[str]]:
    """Returns by fault how many nodes it broke, and how many it breaks under the GPU Operator alone."""
    broken, alone = Counter[str](), Counter[str]()
    for one in rollouts:
        broken[one.fault] += len(one.outcome.harmed)
        alone[one.fault] += one.operator_alone
    return +broken, +alone


def by_fault(rollouts: Iterable["Played"]) -> dict[str, int]:
    return dict(Counter(one.fault for one in rollouts))


def by_gate(rollouts: Iterable["Played"]) -> dict[str, int]:
    return dict(Counter(one.outcome.gate for one in rollouts))


def arguments() -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="bin/bench safety", description=__doc__)
    words.add_argument("--seed", type=whole(0, 10**9), metavar="N")
    words.add_argument("--rollouts", type=whole(1, 100_000), default=ROLLOUTS, metavar="N")
    words.add_argument("--rollout", type=whole(0, 100_000), metavar="K", help="one rollout, with all that came of it")
    words.add_argument("--usual", action="store_true", help="only the gates that a stage has by default")
    words.add_argument("--faults", type=Path, metavar="FILE", help="faults of your own, in place of these")
    words.add_argument("--processes", type=whole(1, 64), default=2, metavar="N")
    words.add_argument("--plot", type=Path, metavar="FILE", help="an SVG of the broken nodes by fault")
    return words.parse_args()


if __name__ == "__main__":
    main()
