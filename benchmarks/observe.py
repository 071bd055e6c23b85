"""What watching a cluster costs: the whole stack on real sockets, a simulated fleet, and what others have beside it.

bin/bench observe [--nodes N[,N…]] [--short]: 5,000, 1,000 and 500 nodes, over an hour; --short takes a minute.
bin/bench observe --clusters 4: four clusters of 5,000 nodes, watched by one worker.
"""

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import django

from benchmarks.figures import Figures
from demo.numbers import whole
from demo.parts import Fleet

LARGE = 5000  # its figures have no suffix
SMALL = 500


def main() -> None:
    asked = arguments()
    # Only for the product's decoding, which is measured here: nothing of this process is in a database.
    os.environ |= {"DJANGO_SETTINGS_MODULE": "config.settings.dev"}
    django.setup()
    from benchmarks.observing.run import FULL, SHORT, Costs, growth, observe
    from benchmarks.observing.several import observe_several

    length = SHORT if asked.short else FULL
    length = replace(length, quiet_s=asked.quiet_s or length.quiet_s, churn_s=asked.churn_s or length.churn_s)
    figures = Figures("observe", {"seed": asked.seed})
    if asked.clusters > 1:
        nodes = asked.nodes[0]
        together = figures.under(f"_{asked.clusters}_clusters", nodes=nodes, clusters=asked.clusters)
        together.measure_reference()
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
            fleet = Fleet(name=asked.fleet, nodes=nodes, seed=asked.seed, speed=1.0)
            observe_several(together, Path(folder), fleet, asked.clusters, length)
        figures.end()
        return
    costs: dict[int, Costs] = {}
    for nodes in asked.nodes:
        fleet = Fleet(name=asked.fleet, nodes=nodes, seed=asked.seed, speed=1.0)
        sized = figures.under("" if nodes == LARGE else f"_{nodes}", nodes=nodes)
        sized.measure_reference()
        with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
            costs[nodes] = observe(sized, Path(folder), fleet, length)
    if LARGE in costs and SMALL in costs:
        growth(figures, costs[LARGE], costs[SMALL])
    figures.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench observe")
    parser.add_argument("--nodes", type=sizes, default=[LARGE, 1000, SMALL], metavar="N[,N…]")
    parser.add_argument("--clusters", type=whole(1, 16), default=1, help="of the first size, watched together")
    parser.add_argument("--fleet", default="large", help="as the simulator names it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="fewer of each, for ratios and counts")
    parser.add_argument("--quiet-s", type=float, metavar="S", help="how long it only listens to heartbeats (300)")
    parser.add_argument("--churn-s", type=float, metavar="S", help="how long pods and labels change (600)")
    return parser.parse_args()


def sizes(words: str) -> list[int]:
    return [int(word) for word in words.split(",")]


if __name__ == "__main__":
    main()
