"""Whatever becomes of its workers, its messages and its API server, nothing is let go unbidden and every plan ends.

bin/bench crash [--seed N] [--schedules N] [--schedule K] [--pulls] [--cases] [--sigkills N] [--plant NAME] [--plants]
                [--each-plant [NAME[=K] …]]

Most of it is one process: the real engine, rows and API server with no socket between them and a clock of its own, so
that a plan's life takes a tenth of a second, and its worker can die between any two writes. What cannot be had so, a
process that is killed or stopped by the kernel, is had with real ones.
"""

import argparse
import secrets
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.crashing.figures import FIGURES
from benchmarks.crashing.run import KILLED, Found, each_plant, in_processes, make_ready, schedules, set_up
from benchmarks.figures import Figures
from benchmarks.writes import report_longest_write
from demo.numbers import whole

SCHEDULES, SIGKILLS = 10_000, 50


def main() -> None:
    asked = arguments()
    if asked.plants:
        list_plants()
        return
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    if asked.schedule is not None:
        show_one(seed, asked.schedule, asked.plant, few=asked.few)
        return
    if asked.each_plant is not None:
        try_each_plant(seed, asked)
        return
    figures = Figures("crash", {"seed": seed} | ({"plant": asked.plant} if asked.plant else {}))
    figures.measure_reference()
    chosen = {"few": asked.few, **only(asked), "processes": asked.processes}
    # Beside one another: who kills real workers mostly waits for them. A stack dies with the thread that started it.
    with ThreadPoolExecutor(max_workers=1) as beside:
        living = beside.submit(in_processes, seed, asked.schedules, plant=asked.plant, **chosen)
        at_kills = Found()
        with_kills = asked.sigkills and not asked.plant
        killed, in_turn, stopped = kill(seed, asked.sigkills, at_kills) if with_kills else (0, 0, 0)
        found = living.result()
    found.join(at_kills)
    figures.beside("schedules", found.schedules, "schedules", rounds=found.rounds)
    tell_seams(figures, found, all_uncut=asked.uncut)
    figures.beside("sigkills", killed, "workers", in_turn=in_turn)
    figures.beside("sigstops", stopped, "workers")
    notify(figures, found, asked, seed)
    figures.end()


def only(asked: argparse.Namespace) -> dict[str, bool]:
    """Which schedules are asked for alone."""
    return {"only_pulls": asked.pulls, "only_cases": asked.cases}


def kill(seed: int, count: int, found: Found) -> tuple[int, int, int]:
    """No guard is taken out of real workers: how many of them were killed, in their turn too, and stopped."""
    from benchmarks.crashing.killing import kill_workers

    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
        return kill_workers(seed, count, Path(folder), found)


def notify(figures: Figures, found: Found, asked: argparse.Namespace, seed: int) -> None:
    for figure, examples in found.examples.items():
        for number, says in examples:
            print(f"{figure}: {says}\n  {again(asked, seed, number)}", file=sys.stderr)
    for figure, unit in FIGURES.items():
        figures.at_most(figure, found.counts[figure], 0, unit)
    report_longest_write(figures, found.longest_write_ms, sql=found.longest_write_sql)


def tell_seams(figures: Figures, found: Found, *, all_uncut: bool) -> None:
    uncut, gaps = found.uncut, sum(found.seams.values())
    gaps_cut = gaps - sum(found.seams[seam] for seam in uncut)
    cut = len(found.seams) - len(uncut)
    figures.beside("seams", len(found.seams), "seams", cut=cut, gaps=gaps, gaps_cut=gaps_cut)
    for seam in uncut if all_uncut else ():
        print(f"uncut{', a gap' if found.seams[seam] else ''}: {seam}", file=sys.stderr)


def again(asked: argparse.Namespace, seed: int, number: int) -> str:
    """What shows it again. What came of killed workers depends on the moment: there it is only the seed."""
    if number == KILLED:
        return f"bin/bench crash --seed {seed} --schedules 0 --sigkills {asked.sigkills}"
    words = [f"bin/bench crash --seed {seed} --schedule {number}", "--few" if asked.few else ""]
    return " ".join([*words, f"--plant {asked.plant}" if asked.plant else ""]).strip()


def show_one(seed: int, number: int, plant: str, *, few: bool) -> None:
    """One schedule, with all that the API server was asked."""
    make_ready()
    from benchmarks.crashing.schedule import story

    for _, outcome in schedules(seed, range(number, number + 1), plant=plant, few=few):
        print("\n".join(story(outcome.world)))
        for violation in outcome.violations:
            print(f"{violation.figure}: {violation.says}")
        sys.exit("not ok" if outcome.violations else 0)


def try_each_plant(seed: int, asked: argparse.Namespace) -> None:
    make_ready()
    from benchmarks.crashing.plants import PLANTS

    figures = Figures("crash", {"seed": seed})
    wanted = dict(asked.each_plant) or dict.fromkeys(PLANTS)
    if unknown := [name for name in wanted if name not in PLANTS]:
        sys.exit(f"No such guard: {', '.join(unknown)}. --plants lists them.")
    missed = 0
    for tried in each_plant(seed, wanted, asked.schedules, few=asked.few, **only(asked)):
        missed += tried.number is None
        found = {"schedule": tried.number, "found": tried.figure, "says": tried.says}
        figures.beside("planted", tried.schedules, "schedules", plant=tried.plant, **found)
    figures.at_most("missed_plants", missed, 0, "plants")
    figures.end()


def list_plants() -> None:
    set_up()
    from benchmarks.crashing.plants import PLANTS

    width = max(map(len, PLANTS))
    for name, plant in PLANTS.items():
        print(f"{name:{width}}  {plant.says}")


def plant_and_first(word: str) -> tuple[str, int | None]:
    name, _, first = word.partition("=")
    return name, whole(0, 10**6)(first) if first else None


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench crash")
    parser.add_argument("--seed", type=int, metavar="N", help="random, and said")
    parser.add_argument("--schedules", type=whole(0, 10**6), default=SCHEDULES, metavar="N", help="in process (10000)")
    parser.add_argument(
        "--schedule", type=whole(0, 10**6), metavar="K", help="only this one of the seed, and all it did"
    )
    parser.add_argument("--sigkills", type=whole(0, 10**4), default=SIGKILLS, metavar="N", help="of real workers (50)")
    parser.add_argument("--plant", default="", metavar="NAME", help="take one guard out: the bench must fail")
    parser.add_argument("--plants", action="store_true", help="list the guards that can be taken out")
    parser.add_argument(
        "--each-plant", nargs="*", type=plant_and_first, metavar="NAME[=K]",
        help="take these guards out in turn, or all of them, each until it is found out; K: the schedule to begin with",
    )  # fmt: skip
    parser.add_argument("--processes", type=whole(1, 64), default=0, metavar="N", help="as many as there are cores")
    parser.add_argument("--pulls", action="store_true", help="only those whose operations pull an image")
    parser.add_argument("--cases", action="store_true", help="only those with cases and operations on nodes")
    parser.add_argument("--uncut", action="store_true", help="say of each seam at which nothing happened which it is")
    parser.add_argument("--few", action="store_true", help="fewer sizes and lives: a start in seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
