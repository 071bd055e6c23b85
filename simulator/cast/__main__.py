"""`python -m simulator.cast --kubeconfig F`: the actors against any API server that has no controllers of its own.

With `--nodes-alone` it has them, and a scheduler and the GPU Operator: then only what happens on nodes is played.
"""

import argparse
import faulthandler
import json
import logging
import signal
import sys
import threading

from simulator.actors.dra.api import Api
from simulator.actors.gpu_operator.release import Release
from simulator.actors.http_cluster import HttpCluster
from simulator.actors.loop import Loop
from simulator.actors.play import Play
from simulator.clock import Clock
from simulator.faults import FAULTS, Board
from simulator.faults.board import parse
from simulator.fleets import FLEETS
from simulator.fleets.planting import Planting
from simulator.kinds import NODE
from simulator.numbers import factor, whole


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator.cast", description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--context")
    parser.add_argument("--seed", choices=sorted(FLEETS), help="plant this fleet, where there is no node yet")
    parser.add_argument("--nodes", type=whole(0, 20_000), default=8)
    parser.add_argument(
        "--speed", type=factor(0.1, 1000), default=1.0, help="how many seconds of cluster time a second takes"
    )
    parser.add_argument("--operator", default=Release().version, help="the GPU Operator's release")
    parser.add_argument("--claims", action="store_true", help="devices are claimed there, through resource.k8s.io/v1")
    parser.add_argument(
        "--nodes-alone", action="store_true", help="kubelets and what runs on nodes: all else is there already"
    )
    parser.add_argument("--faults", action="append", default=[], metavar="NAME[:SETTING=VALUE,...]")
    return parser.parse_args()


def main() -> None:
    faulthandler.enable()
    options = arguments()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    cluster, clock = HttpCluster.of_kubeconfig(options.kubeconfig, options.context), Clock(options.speed)
    release = Release(options.operator)
    if options.seed and not cluster.list(NODE)[0]:
        plan = FLEETS[options.seed](nodes=options.nodes, seed=1, release=release)
        Planting(cluster, plan, clock.now()).plant()
    faults = Board(*(parse(FAULTS, text) for text in options.faults))
    dra = Api() if options.claims else None
    play = Play(
        cluster,
        Loop(clock),
        faults,
        release=release,
        keeps_budgets=True,
        dra=dra,
        is_on_nodes_alone=options.nodes_alone,
    )
    play.fill()
    stopping = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopping.set())
    play.start()
    sys.stdout.write(json.dumps({"nodes": len(play.world[NODE].objects)}) + "\n")
    sys.stdout.flush()
    stopping.wait()
    play.stop()


if __name__ == "__main__":
    main()
