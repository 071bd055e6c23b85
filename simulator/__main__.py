"""`python -m simulator`: the API server and everybody behind it, until told to stop."""

import argparse
import asyncio
import ctypes
import json
import secrets
import signal
import sys
import tempfile
from pathlib import Path

import uvloop

from simulator import kubeconfig
from simulator.bootstrap import add_roles
from simulator.clock import Clock
from simulator.disruption import BudgetKeeper
from simulator.faults.board import Board, parse
from simulator.pod_ends import PodEnds
from simulator.rbac import service_account
from simulator.request_log import RequestLog
from simulator.store import Store
from simulator.wire.access import ADMIN, Access, Authorization
from simulator.wire.api import Api
from simulator.wire.app import Wire
from simulator.wire.control import TABLE, Control
from simulator.wire.server import Server, Striker, bound

PR_SET_PDEATHSIG = 1
ADMIN_CONTEXT = "simulator"
RBAC_CONTEXT = "quarterdeck-rbac"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--fleet", default="small", help="what is in the cluster; `none` for an empty one")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--speed", type=float, default=1.0, help="how many seconds of cluster time a second takes")
    parser.add_argument("--kubeconfig-out", type=Path)
    parser.add_argument("--request-log", type=Path)
    parser.add_argument("--faults", action="append", default=[], metavar="NAME[:SETTING=VALUE,...]")
    parser.add_argument("--authorization", type=Authorization, default=Authorization.ALLOW, choices=list(Authorization))
    parser.add_argument("--die-with-parent", action="store_true")
    return parser.parse_args()


def die_with_parent() -> None:
    ctypes.CDLL("libc.so.6", use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


async def serve(options: argparse.Namespace) -> None:
    clock, board, log, ends = Clock(options.speed), Board(), RequestLog(options.request_log), PodEnds()
    store = Store(clock)
    add_roles(store)
    tokens = {name: secrets.token_urlsafe(24) for name in (ADMIN_CONTEXT, RBAC_CONTEXT)}
    users = {tokens[ADMIN_CONTEXT]: ADMIN, tokens[RBAC_CONTEXT]: service_account("quarterdeck", "quarterdeck")}
    access = Access(store, options.authorization, users)
    closing = asyncio.Event()
    wire = Wire(Api(store, access, ends, closing=closing), Control(board, log).app(), board, log)
    listener = bound(options.host, options.port)
    server = Server(wire, listener, closing=closing)
    board.on_change(Striker(board, store, server).listener())
    for text in options.faults:
        board.put(parse(TABLE, text))
    budgets = BudgetKeeper(store)
    budgets.start()
    url = f"http://{options.host}:{listener.getsockname()[1]}"
    out = options.kubeconfig_out or Path(tempfile.mkdtemp(prefix="simulator-")) / "kubeconfig"
    kubeconfig.write(out, url, tokens)
    serving = asyncio.create_task(server.run_until_stopped())
    await server.ready.wait()
    sys.stdout.write(json.dumps({"url": url, "kubeconfig": str(out)}) + "\n")
    sys.stdout.flush()
    await serving
    budgets.stop()
    log.close()


def main() -> None:
    options = arguments()
    if options.die_with_parent:
        die_with_parent()
    uvloop.run(serve(options))


if __name__ == "__main__":
    main()
