"""`bin/demo`: everything on one machine under one supervisor, until Ctrl-C."""

import argparse
import sys
from pathlib import Path

from demo.parts import BREAKS_WORKLOADS, Fleet
from demo.settings import ROOT
from demo.supervisor import run


def main() -> int:
    """Read the words of the command line and start what they ask for."""
    asked = parser().parse_args()
    if asked.smoke:
        from demo.smoke import smoke

        return smoke(nodes=asked.nodes or 16)
    nodes, faults = asked.nodes or 64, (BREAKS_WORKLOADS,)
    fleet = Fleet(asked.fleet, nodes=nodes, seed=asked.seed, speed=asked.speed, faults=faults, is_kept=True)
    return run(asked.data_dir, fleet, port=asked.port, reset=asked.reset, reload=asked.reload)


def parser() -> argparse.ArgumentParser:
    """Return what the command understands."""
    words = argparse.ArgumentParser(prog="bin/demo", description=__doc__)
    words.add_argument("--nodes", type=int, metavar="N", help="GPU nodes in the simulated fleet (64; for --smoke 16)")
    words.add_argument(
        "--fleet",
        choices=("small", "mixed"),
        default="small",
        help="small: two SKUs and two kernels; mixed: MIG, time-slicing, MPS, DRA, spot, AMD and Gaudi beside them",
    )
    words.add_argument("--seed", type=int, default=1, metavar="N", help="another seed, another fleet (1)")
    words.add_argument("--speed", type=float, default=20.0, metavar="X", help="cluster seconds per second (20)")
    words.add_argument("--port", type=int, default=8000, metavar="P", help="the web port to try first (8000)")
    words.add_argument("--data-dir", type=Path, default=ROOT / ".data" / "demo", metavar="D", help="where it keeps all")
    words.add_argument("--reset", action="store_true", help="forget the fleet and the database of the last time")
    words.add_argument("--smoke", action="store_true", help="drive two promotions, print the figures, and end")
    words.add_argument("--reload", action="store_true", help=argparse.SUPPRESS)  # bin/dev
    return words


if __name__ == "__main__":
    sys.exit(main())
