"""`bin/demo`: everything on one machine under one supervisor, until Ctrl-C."""

import argparse
import sys
from pathlib import Path

from demo.numbers import factor, whole
from demo.parts import BREAKS_WORKLOADS, MOST_NODES, Fleet
from demo.settings import ROOT
from demo.supervisor import run

MOST_SEED = 2**31 - 1


def main() -> int:
    """Read the words of the command line and start what they ask for."""
    words = parser()
    asked = words.parse_args()
    if asked.smoke:
        from demo.smoke import FEWEST_NODES, smoke

        nodes = FEWEST_NODES if asked.nodes is None else asked.nodes
        if nodes < FEWEST_NODES:
            words.error(f"--smoke needs {FEWEST_NODES} nodes or more: canaries of two SKUs, and waves after them")
        return smoke(nodes=nodes)
    nodes, faults = 64 if asked.nodes is None else asked.nodes, (BREAKS_WORKLOADS,)
    fleet = Fleet(asked.fleet, nodes=nodes, seed=asked.seed, speed=asked.speed, faults=faults, is_kept=True)
    return run(
        asked.data_dir,
        fleet,
        port=asked.port,
        reset=asked.reset,
        reload=asked.reload,
        with_prometheus=asked.prometheus,
        is_still=asked.still,
        opens_browser=asked.browser and not asked.reload,
    )


def parser() -> argparse.ArgumentParser:
    """Return what the command understands."""
    words = argparse.ArgumentParser(prog="bin/demo", description=__doc__)
    nodes = whole(0, MOST_NODES)
    words.add_argument("--nodes", type=nodes, metavar="N", help="GPU nodes in the simulated fleet (64; for --smoke 16)")
    words.add_argument(
        "--fleet",
        choices=("small", "cluster-policy", "mixed"),
        default="small",
        help=(
            "small: two SKUs and two kernels; cluster-policy: the same with one driver version for all; "
            "mixed: MIG, time-slicing, MPS, DRA, spot, AMD and Gaudi beside them"
        ),
    )
    words.add_argument(
        "--seed", type=whole(0, MOST_SEED), default=1, metavar="N", help="another seed, another fleet (1)"
    )
    speed, port = factor(0.1, 1000), whole(0, 65535)
    words.add_argument("--speed", type=speed, default=20.0, metavar="X", help="cluster seconds per second (20)")
    words.add_argument("--port", type=port, default=8000, metavar="P", help="the web port to try first (8000); 0: any")
    words.add_argument(
        "--data-dir",
        type=Path,
        default=ROOT / ".data" / "demo",
        metavar="D",
        help="where it keeps all; a second fleet has a folder of its own in it",
    )
    words.add_argument("--reset", action="store_true", help="forget this fleet, its database, and what was added to it")
    words.add_argument(
        "--prometheus", action="store_true", help="a Prometheus beside it, the one on the PATH, that scrapes the fleet"
    )
    words.add_argument("--still", action="store_true", help="no GPU breaks and no team asks for more, minute by minute")
    words.add_argument("--no-browser", dest="browser", action="store_false", help="open none, also where there is one")
    words.add_argument("--smoke", action="store_true", help="drive two promotions, print the figures, and end")
    words.add_argument("--reload", action="store_true", help=argparse.SUPPRESS)  # bin/dev
    return words


if __name__ == "__main__":
    sys.exit(main())
