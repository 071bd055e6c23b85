"""What many browsers and scripts at once leave behind in the web process: three equal loads on the whole stack.

bin/bench load [--nodes N] [--sockets N] [--clients N] [--requests N] [--short] [--db postgres]
"""

import argparse
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.loading.run import FULL, SHORT, Size, load
from demo import postgres
from demo.numbers import whole
from demo.parts import MOST_NODES, Fleet


def main() -> None:
    asked = arguments()
    size = sized(SHORT if asked.short else FULL, asked)
    nodes = asked.nodes or (8 if asked.short else 512)
    conditions = {
        "db": asked.db,
        "nodes": nodes,
        "sockets": size.sockets,
        "clients": size.clients,
        "requests": size.requests,
    }
    figures = Figures("load", conditions)
    figures.measure_reference()
    database = postgres.running() if asked.db == "postgres" else nullcontext("")
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder, database as url:
        load(figures, Path(folder), Fleet(nodes=nodes, speed=1.0), size, database_url=url)
    figures.end()


def sized(size: Size, asked: argparse.Namespace) -> Size:
    named = {name: getattr(asked, name) for name in ("sockets", "clients", "requests")}
    return replace(size, **{name: number for name, number in named.items() if number is not None})


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench load")
    parser.add_argument("--nodes", type=whole(1, MOST_NODES), metavar="N", help="of the fleet (512)")
    parser.add_argument("--sockets", type=whole(1, 1000), metavar="N", help="open at once (300)")
    parser.add_argument("--clients", type=whole(1, 200), metavar="N", help="that ask at once (50)")
    parser.add_argument("--requests", type=whole(1, 1000), metavar="N", help="of each client, one by one (20)")
    parser.add_argument("--short", action="store_true", help="few of each, for counts")
    parser.add_argument("--db", choices=("sqlite", "postgres"), default="sqlite")
    return parser.parse_args()


if __name__ == "__main__":
    main()
