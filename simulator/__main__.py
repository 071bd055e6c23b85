"""`python -m simulator`: the API server and everybody behind it, until told to stop."""

import argparse
import asyncio
import ctypes
import faulthandler
import gc
import json
import re
import signal
import sys
from pathlib import Path

import uvloop

from simulator.actors.exporting.counters import Choice
from simulator.cast.inside import EMPTY
from simulator.faults import FAULTS
from simulator.faults.board import UnknownFault, parse
from simulator.fleets import FLEETS
from simulator.fleets.mixes import UnknownMix
from simulator.fleets.plan import Mode
from simulator.kinds import ResourceApi
from simulator.kubeconfig import ForeignFile
from simulator.numbers import factor, whole
from simulator.run import Simulation
from simulator.several import one_of
from simulator.state import UnreadableState
from simulator.wire.access import Authorization
from simulator.wire.control import MOST_CHURN

PR_SET_PDEATHSIG = 1
MOST_PORT = 65535
MOST_NODES = 20_000  # of 70 kB each, with what runs on them
MOST_CLUSTERS = 200


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=whole(0, MOST_PORT), default=0, help="0: any free one")
    parser.add_argument("--tls", action="store_true", help="https with a certificate of its own; implied by rbac")
    parser.add_argument("--fleet", default="small", choices=[*FLEETS, EMPTY], help="what is in the cluster")
    parser.add_argument("--nodes", type=whole(0, MOST_NODES), default=64, metavar="N", help="GPU nodes")
    parser.add_argument(
        "--clusters", type=whole(1, MOST_CLUSTERS), default=1, metavar="N", help="so many, each on a port of its own"
    )
    parser.add_argument("--seed", type=whole(0, 2**31 - 1), default=1)
    parser.add_argument(
        "--speed", type=factor(0.1, 1000), default=1.0, help="how many seconds of cluster time a second takes"
    )
    churn = factor(0, MOST_CHURN)
    parser.add_argument("--churn", type=churn, default=0.0, metavar="N", help="pods and labels that change each second")
    parser.add_argument("--operator", type=release, default="v26.7.0", help="the GPU Operator's release")
    parser.add_argument("--mix", default="", metavar="KIND=SHARE,...", help="what a mixed fleet is made of")
    parser.add_argument("--mode", default="", choices=["", *Mode], help="of a mixed fleet: who runs the driver")
    parser.add_argument(
        "--counters", type=Choice, default=Choice.SHIPPED, choices=list(Choice), help="what DCGM exporters count"
    )
    parser.add_argument("--resource-api", type=ResourceApi, default=ResourceApi.V1, choices=list(ResourceApi))
    parser.add_argument(
        "--state", type=Path, metavar="FILE", help="keep the cluster there, and go on with what is there"
    )
    parser.add_argument("--tells-devices", action="store_true", help="kubelets with the gate ResourceHealthStatus")
    parser.add_argument("--janitor", action="store_true", help="NVSentinel: reboots, GPU resets, maintenance requests")
    parser.add_argument("--kubeconfig-out", type=Path)
    parser.add_argument("--request-log", type=Path)
    parser.add_argument("--faults", action="append", default=[], metavar="NAME[:SETTING=VALUE,...]")
    parser.add_argument("--authorization", type=Authorization, default=Authorization.ALLOW, choices=list(Authorization))
    parser.add_argument("--die-with-parent", action="store_true")
    options = parser.parse_args(words)
    last = options.port + options.clusters - 1
    if options.port and last > MOST_PORT:
        parser.error(f"the last of {options.clusters} clusters would have port {last}; there are {MOST_PORT}")
    return options


def release(word: str) -> str:
    """A version of the operator as its tags have it."""
    if not re.fullmatch(r"v?[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}", word):
        raise argparse.ArgumentTypeError(f"{word!r} is no release of the GPU Operator: v26.7.0 is one")
    return word


def die_with_parent() -> None:
    ctypes.CDLL("libc.so.6", use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spare_the_collector() -> None:
    """A fleet is millions of small dicts without a cycle among them: looking for one would take most of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def serve(options: argparse.Namespace) -> None:
    simulations = [Simulation(one_of(options, number)) for number in range(1, options.clusters + 1)]
    spare_the_collector()
    for text in options.faults:
        for simulation in simulations:
            simulation.board.put(parse(FAULTS, text))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop, simulations)
    serving = asyncio.gather(*(simulation.serve() for simulation in simulations))
    ready = asyncio.gather(*(simulation.ready() for simulation in simulations))
    await asyncio.wait({serving, ready}, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        places = [{"url": each.url, "kubeconfig": str(each.kubeconfig)} for each in simulations]
        sys.stdout.write(json.dumps(places[0] | ({"clusters": places} if len(places) > 1 else {})) + "\n")
        sys.stdout.flush()
    await serving
    ready.cancel()


def stop(simulations: list[Simulation]) -> None:
    for simulation in simulations:
        simulation.stop()


def main() -> None:
    faulthandler.enable()
    options = arguments()
    if options.die_with_parent:
        die_with_parent()
    try:
        uvloop.run(serve(options))
    except (
        ForeignFile,
        UnknownFault,
        UnreadableState,
        UnknownMix,
        OSError,
    ) as error:  # a port somebody has, and the like
        sys.exit(f"simulator: {error}")


if __name__ == "__main__":
    main()
