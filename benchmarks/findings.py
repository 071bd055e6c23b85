"""What telemetry and its rules cost, and what they find: a simulated day in which all kinds of trouble are planted.

bin/bench findings [--seed N] [--nodes N] [--hours H] [--short] [--plant K]
"""

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.finding.day.asked import DayAsked
from benchmarks.finding.day.processes import lived
from benchmarks.finding.day.telling import SHOWN, say
from demo import valkey
from demo.numbers import factor, whole
from demo.parts import MOST_NODES

NODES, SHORT = 5000, 200
DAYS = ((1000, 24.0, ""), (5000, 1.0, "_5000"))  # nodes, hours, suffix of the figures
SHORT_DAYS = ((60, 2.0, ""),)
INGEST_RATIO, INGEST_RSS_MIB = 5.0, 150.0
ASKED_AT_MOST = 200  # nodes whose exporters are asked one by one
MINUTE_MS, TRANSACTION_MS, PLOT_MS = 100.0, 100.0, 100.0  # the first and the last of CPU
JUDGE_S = 5.0  # of CPU: within the 10 s between two looks, on half a core


def main() -> None:
    asked = arguments()
    seed = secrets.randbelow(10**9) if asked.seed is None else asked.seed
    print(f"seed {seed}", file=sys.stderr, flush=True)
    nodes = asked.nodes or (SHORT if asked.short else NODES)
    figures = Figures("findings", {"seed": seed})
    figures.measure_reference()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
        child, url = valkey.start(Path(folder) / "valkey", log=Path(folder) / "log", env=dict(os.environ))
        try:
            _live(figures, asked, seed, url)
            if asked.plant is None and not asked.day:
                _measure(figures.under("", nodes=nodes, gpus=8 * nodes, metrics=20), Path(folder), nodes, url)
        finally:
            child.stop()
    figures.end()


def _live(figures: Figures, asked: argparse.Namespace, seed: int, redis_url: str) -> None:
    """The days, side by side."""
    wanted = SHORT_DAYS if asked.short else DAYS
    if asked.nodes or asked.hours:
        wanted = ((asked.nodes or wanted[0][0], asked.hours or (1.0 if asked.nodes else wanted[0][1]), ""),)
    days = [DayAsked(seed, nodes, hours, asked.plant) for nodes, hours, _ in wanted]
    for day, told, (*_, suffix) in zip(days, lived(days, redis_url), wanted, strict=True):
        for trouble in told.troubles[:SHOWN]:
            print(f"{trouble.figure}: {trouble.says}", file=sys.stderr)
            again = day.again if trouble.number is None else f"{day.again} --plant {trouble.number}"
            print(f"  {again}", file=sys.stderr, flush=True)
        say(figures.under(suffix, nodes=day.nodes, hours=day.hours), told)


def _measure(figures: Figures, folder: Path, nodes: int, redis_url: str) -> None:
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "DATABASE_URL": f"sqlite:///{folder / 'judged.sqlite3'}",
        "REDIS_URL": redis_url,
    }
    from benchmarks.finding.ingesting import ingest

    took = ingest(folder, nodes)
    figures.at_least("ingest_ratio", round(took.theirs_s / took.ours_s, 2), INGEST_RATIO, "x")
    figures.beside("ingest_s", round(took.ours_s, 3), "s")
    figures.at_most("ingest_rss_mib", round(took.rss_mib, 1), INGEST_RSS_MIB, "MiB")
    from benchmarks.finding.judging import judge
    from benchmarks.writes import report_longest_write

    judged = judge(nodes)
    figures.at_most("judge_s", round(judged.look_s, 3), JUDGE_S, "s", queries=judged.queries)
    report_longest_write(figures, judged.longest_write_ms, findings=judged.findings)
    figures.beside("judge_gpus_s", round(judged.gpus_s, 3), "s")
    figures.beside("keep_frame_s", round(judged.keep_s, 3), "s", kib=judged.kib)
    from benchmarks.finding.minutes import live_a_day

    day = live_a_day(min(nodes, ASKED_AT_MOST))
    figures = figures.under("", nodes=min(nodes, ASKED_AT_MOST), gpus=8 * min(nodes, ASKED_AT_MOST), metrics=7)
    figures.at_most("minute_ms", round(day.keep_ms, 1), MINUTE_MS, "ms")
    figures.at_most("minute_transaction_ms", round(day.transaction_ms, 1), TRANSACTION_MS, "ms")
    figures.at_most("minute_plot_ms", round(day.plot_ms, 1), PLOT_MS, "ms", queries=day.plot_queries)
    figures.beside("minutes_of_a_day_mib", round(day.mib, 1), "MiB")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench findings")
    parser.add_argument("--seed", type=int, metavar="N", help="random, and said")
    parser.add_argument("--nodes", type=whole(1, MOST_NODES), metavar="N", help="of one day, and of what is measured")
    parser.add_argument("--hours", type=factor(0.5, 48), metavar="H", help="of one day (24 at 1,000 nodes, 1 at 5,000)")
    parser.add_argument("--short", action="store_true", help="60 nodes for two hours")
    parser.add_argument("--day", action="store_true", help="only what is found, not what it costs")
    parser.add_argument("--plant", type=whole(0, 10**6), metavar="K", help="only this one of the seed's day")
    return parser.parse_args()


if __name__ == "__main__":
    main()
