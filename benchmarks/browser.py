"""What the map costs a browser: the system's Chromium against the whole stack, read from its own performance trace.

bin/bench browser [--nodes N] [--short]
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.browsing.run import FULL, SHORT, browse, program
from benchmarks.figures import Figures
from demo.numbers import whole
from demo.parts import MOST_NODES, Fleet


def main() -> None:
    asked = arguments()
    length = SHORT if asked.short else FULL
    nodes = asked.nodes or (64 if asked.short else 5000)
    figures = Figures("browser", {"nodes": nodes})
    figures.measure_reference()
    if program() is None:
        figures.lacks("map", "no Chromium is on the PATH")
        figures.end()
    fleet = Fleet(name="large", nodes=nodes, speed=1.0)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
        browse(figures, Path(folder), fleet, length)
    figures.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench browser")
    parser.add_argument("--nodes", type=whole(1, MOST_NODES), metavar="N", help="of the fleet (5000)")
    parser.add_argument("--short", action="store_true", help="few of everything and 64 nodes, for whether it runs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
