"""One simulated cluster, put together: store, wire, actors and faults."""

import argparse
import secrets
import shutil
import tempfile
import weakref
from pathlib import Path

from simulator import kubeconfig
from simulator.actors.churn import Churn
from simulator.bootstrap import add_roles
from simulator.cast.inside import raise_curtain
from simulator.clock import Clock
from simulator.disruption import BudgetKeeper
from simulator.faults.board import Board
from simulator.kinds import served
from simulator.pod_ends import PodEnds
from simulator.rbac import service_account
from simulator.request_log import RequestLog
from simulator.state import Keeper, load
from simulator.store import Store
from simulator.wire.access import ADMIN, Access, Authorization
from simulator.wire.api import Api
from simulator.wire.app import Wire
from simulator.wire.certificate_files import Certificate
from simulator.wire.closing import Closing
from simulator.wire.control import Control
from simulator.wire.server import Server, Striker, bound

ADMIN_CONTEXT = "simulator"
RBAC_CONTEXT = "quarterdeck-rbac"


class Simulation:
    def __init__(self, options: argparse.Namespace) -> None:
        self.board = Board()
        self.log = RequestLog(options.request_log)
        self.ends = PodEnds()
        self.store = Store(Clock(options.speed), served(options.resource_api))
        is_planted = self._restore(options.state)
        self._keeper = Keeper(self.store, options.state) if options.state else None
        self._budgets = BudgetKeeper(self.store)
        self._play = raise_curtain(
            self.store,
            self.board,
            self.ends,
            fleet=options.fleet,
            nodes=options.nodes,
            seed=options.seed,
            operator=options.operator,
            mix=options.mix,
            mode=options.mode,
            counters=options.counters,
            resource_api=options.resource_api,
            tells_devices=options.tells_devices,
            has_janitor=options.janitor,
            is_planted=is_planted,
        )
        self._churn = Churn(self._play.world, options.seed) if self._play else None
        if self._churn and options.churn:
            self._churn.ask(options.churn)
        self._listen(options)

    def _restore(self, file: Path | None) -> bool:
        """Whether there was something to go on with."""
        if file is not None and file.exists():
            load(self.store, file)
            return True
        add_roles(self.store)
        return False

    def _listen(self, options: argparse.Namespace) -> None:
        folder = Path(tempfile.mkdtemp(prefix="simulator-"))
        self._tidy_up = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        # kubectl and client-go keep a token to themselves unless the connection is encrypted.
        is_secret = options.tls or options.authorization is Authorization.RBAC
        certificate = _issued(folder, options.host) if is_secret else None
        listener = bound(options.host, options.port)
        self.url = f"{'https' if is_secret else 'http'}://{options.host}:{listener.getsockname()[1]}"
        tokens = {name: secrets.token_urlsafe(24) for name in (ADMIN_CONTEXT, RBAC_CONTEXT)}
        users = {tokens[ADMIN_CONTEXT]: ADMIN, tokens[RBAC_CONTEXT]: service_account("quarterdeck", "quarterdeck")}
        self.kubeconfig = options.kubeconfig_out or folder / "kubeconfig"
        kubeconfig.write(self.kubeconfig, self.url, tokens, certificate.pem if certificate else None)
        closing = Closing()
        api = Api(self.store, Access(self.store, options.authorization, users), self.ends, closing=closing)
        wire = Wire(api, Control(self.store, self.board, self.log, self._churn).app(), self.board, self.log)
        self._server = Server(wire, listener, closing=closing, certificate=certificate)
        self.board.on_change(Striker(self.board, self.store, self._server).listener())

    async def serve(self) -> None:
        """Until a signal ends it."""
        self._budgets.start()
        if self._keeper:
            self._keeper.start()
        try:
            await self._server.run_until_stopped()
        finally:
            if self._play:
                self._play.stop()
            self._budgets.stop()
            if self._keeper:
                self._keeper.stop()
            self.log.close()
            self._tidy_up()

    def stop(self) -> None:
        """From any thread."""
        self._server.should_exit = True

    async def ready(self) -> None:
        await self._server.ready.wait()


def _issued(folder: Path, host: str) -> Certificate:
    # Needs the cryptography package, which those who only watch a demo do not have.
    from simulator.wire.certificate import issue

    return issue(folder, host)
