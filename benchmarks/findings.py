"""What telemetry and its rules cost: a Prometheus' answers into a frame, and one look at a cluster with it.

bin/bench findings [--nodes N] [--short]

Whether planted faults are found, and nothing else, is not measured here yet.
"""

import argparse
import os
import tempfile
from pathlib import Path

from benchmarks.figures import Figures
from demo import valkey
from demo.numbers import whole
from demo.parts import MOST_NODES

NODES, SHORT = 5000, 200
INGEST_RATIO, INGEST_RSS_MIB = 5.0, 150.0
JUDGE_S = 5.0  # of CPU: within the 10 s between two looks, on half a core


def main() -> None:
    asked = arguments()
    nodes = asked.nodes or (SHORT if asked.short else NODES)
    figures = Figures("findings", {"nodes": nodes, "gpus": 8 * nodes, "metrics": 20})
    figures.measure_reference()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
        child, url = valkey.start(Path(folder) / "valkey", log=Path(folder) / "log", env=dict(os.environ))
        try:
            _measure(figures, Path(folder), nodes, url)
        finally:
            child.stop()
    figures.end()


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

    judged = judge(nodes)
    figures.at_most("judge_s", round(judged.look_s, 3), JUDGE_S, "s", queries=judged.queries)
    figures.beside("judge_gpus_s", round(judged.gpus_s, 3), "s")
    figures.beside("keep_frame_s", round(judged.keep_s, 3), "s", kib=judged.kib)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench findings")
    parser.add_argument("--nodes", type=whole(1, MOST_NODES), metavar="N", help="of eight GPUs each (5,000)")
    parser.add_argument("--short", action="store_true", help="few nodes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
