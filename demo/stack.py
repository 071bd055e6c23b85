"""The real stack on free ports in a folder of its own: what the demo shows and the flows drive."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from demo import kept, parts, prometheus, rights, tables, tied, valkey
from demo.parts import Fleet
from demo.ports import LOOPBACK
from demo.settings import ROOT, environment

CLUSTER = "demo"
PASSWORD = "demo-on-loopback"  # noqa: S105 (the server listens on loopback only, and the login page says so)
# Django takes two seconds to start: once for several commands.
CALL_EACH = """
import json, sys, django
from django.core.management import CommandError, call_command
django.setup()
try:
    for command in json.loads(sys.argv[1]):
        call_command(*command)
except CommandError as refusal:
    sys.exit(str(refusal))
"""
ACCEPT_S = 60.0
ANNOUNCE_THEMSELVES = ("simulator", "actors", "web")  # their first line says where they are, as JSON
# With the seconds each group has. Workers first: what they still write must find its broker and its cluster.
STOP_ORDER = {
    ("beat", "observe", "rollouts", "default", "web"): 2.5,
    (prometheus.BINARY, "simulator", "actors", "valkey"): 1.0,
}


class StackError(Exception):
    """A part of the stack did not come up, or ended by itself."""


class Stack:
    """All processes of one Quarterdeck. Start it in the thread that will live longest: the children die with it."""

    def __init__(
        self,
        folder: Path,
        fleet: Fleet | None = None,
        *,
        port: int = 0,
        database_url: str = "",
        debug: bool = False,
        with_prometheus: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder.absolute()
        self.fleet = fleet or Fleet()
        self.port = port  # to try first; once it is up, the one it has
        self.kubeconfig = self.fleet.kubeconfig or self.folder / "kubeconfig"
        self.simulator_url = ""
        self.prometheus_url = ""
        self.children: dict[str, tied.Child] = {}
        self.environment: dict[str, str] = {}
        self._commands: dict[str, list[str]] = {}
        self._goes_on = self.fleet.is_kept and kept.has_been_up(self.folder)
        self._is_rebuilt = self._goes_on and not (self.folder / parts.STATE).exists()
        self._database_url = database_url
        self._debug = debug
        self._with_prometheus = with_prometheus
        self._say = say

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Return when every part is up and the cluster is known."""
        (self.folder / "logs").mkdir(parents=True, exist_ok=True, mode=0o700)
        redis_url = self._start_valkey()
        self.environment = environment(
            self.folder,
            redis_url=redis_url,
            database_url=self._database_url,
            debug=self._debug,
            has_prometheus=self._with_prometheus,
            port=self.port,
        )
        self._start_cluster()
        self._say("database and people")
        self._make_database()
        self._start_product()
        self._wait_for_cluster()
        if self._with_prometheus:
            self._start_prometheus()
        self.connect()
        self._wait_for_web()

    def stop(self) -> None:
        """End every child, in four seconds however busy they are."""
        known = {name for names in STOP_ORDER for name in names}
        beside = [child for name, child in self.children.items() if name not in known]
        for names, seconds in STOP_ORDER.items():
            group = [*beside, *(self.children[name] for name in names if name in self.children)]
            tied.ask_to_stop(group)
            tied.wait_for_end(group, timeout_s=seconds)

    @property
    def url(self) -> str:
        """Where the web process is."""
        return f"http://{LOOPBACK}:{self.port}"

    def _make_database(self) -> None:
        """Make what is not there yet of the tables and of the people."""
        database = self.folder / kept.DATABASE
        if self._database_url or database.exists():
            self._migrate()
        else:
            tables.put(database, self._migrate)

    def _migrate(self) -> None:
        self.manage(["migrate", "--verbosity", "0"], ["create_demo_people", "--password", PASSWORD])

    def way_in(self) -> tuple[Path, str]:
        """Return the kubeconfig and context that Quarterdeck is given; the flows put a recorder in between."""
        return self.kubeconfig, self.fleet.context

    def folder_of(self, _name: str) -> Path:
        """Return the code that a part runs; a flow of an upgrade has two versions of it."""
        return ROOT

    def grant(self) -> None:
        """Give Quarterdeck's account its rights in the cluster, as the cluster's owner does."""
        rights.grant(self.kubeconfig, self.fleet.context)

    def manage(self, *commands: Sequence[str]) -> str:
        """Run management commands one after another in one process, and return what they printed."""
        ended = subprocess.run(
            [sys.executable, "-c", CALL_EACH, json.dumps(commands)],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=tied.die_with(os.getpid(), signal.SIGKILL),
        )
        if ended.returncode:
            names = ", ".join(command[0] for command in commands)
            raise StackError(f"{names} failed:\n{ended.stdout}{ended.stderr}".strip())
        return ended.stdout

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a part a signal, and wait for its end where the signal ends it."""
        child = self.children[name]
        os.kill(child.pid, how)
        if how in {signal.SIGKILL, signal.SIGTERM, signal.SIGINT}:
            child.process.wait(timeout=60)

    def start_beside(self, name: str, command: list[str]) -> None:
        """Start one process more; it ends with the others, and is killed and started again like them."""
        self._run(name, command)

    def restart(self, name: str, **more: str) -> None:
        """Start a part again, with these variables besides its own; the web comes back at its address."""
        self.children[name].stop()
        if name == "valkey":
            self._start_valkey()
            return
        self._run(name, self._commands[name], **more)
        if name == "web":
            self._wait_for_web()

    def logs(self, name: str) -> str:
        """Return all that a part has written so far."""
        return self.children[name].log.read_text(errors="replace")

    def ended(self) -> list[tied.Child]:
        """Return the parts that have ended by themselves."""
        return [child for child in self.children.values() if child.has_ended]

    def answers(self) -> bool:
        """Say whether the web process answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as response:  # noqa: S310
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _start_valkey(self) -> str:
        self._say("valkey")
        again = urlsplit(self.environment.get("REDIS_URL", "")).port
        with tied.signals_held():
            child, url = valkey.start(self.folder / "valkey", env=dict(os.environ), log=self._log("valkey"), port=again)
            self.children["valkey"] = child
        return url

    def _start_cluster(self) -> None:
        """Only start it: it comes up while the database is made."""
        if self.fleet.kubeconfig:
            self._say("actors")
            self._run("actors", parts.actors(self.fleet))
            return
        self._say(f"simulator ({self.fleet.nodes} nodes)")
        self._run("simulator", parts.simulator(self.fleet, self.folder))

    def _start_prometheus(self) -> None:
        """Only start it: it reads what it kept while the cluster is made known."""
        self._say("prometheus")
        scraped = prometheus.Scraped(CLUSTER, self.kubeconfig, self.fleet.context)
        with tied.signals_held():
            self.children[prometheus.BINARY], self.prometheus_url = prometheus.start(
                self.folder / prometheus.BINARY, [scraped], log=self._log(prometheus.BINARY)
            )

    def _wait_for_cluster(self) -> None:
        name = "actors" if self.fleet.kubeconfig else "simulator"
        self._wait_until(name, lambda: bool(self._first_line(name)))
        self.simulator_url = self._first_line(name).get("url", "")

    def _wait_for_web(self) -> None:
        """Return once it answers where it says that it listens; started again, it is to have no other address."""
        self._wait_until("web", lambda: bool(self._first_line("web")))
        self.port = self._first_line("web")["port"]
        self._commands["web"] = parts.web(self.port, or_another=False)
        self._wait_until("web", self.answers)

    def _first_line(self, name: str) -> dict[str, Any]:
        """Return what the part said of itself once it was ready; empty until then."""
        line, end, _ = self._out(name).read_text().partition("\n")
        return json.loads(line) if end else {}

    def connect(self) -> None:
        """Make the cluster Quarterdeck's to watch, and the pools of one that is new."""
        self._say("cluster and pools")
        if self._is_rebuilt:
            self._accept()
        self.manage(self.adding(), *([] if self._goes_on else [self.suggesting()]), *self.sourcing())

    def adding(self) -> list[str]:
        """Let Quarterdeck in, and return the command that makes it watch the cluster, in the mode it was given."""
        self.grant()
        kubeconfig, context = self.way_in()
        mode = [] if self._goes_on else ["--mode", "operate"]
        return ["add_cluster", CLUSTER, "--kubeconfig", str(kubeconfig), "--context", context, *mode]

    def _accept(self) -> None:
        """Take the cluster for the one it was before its state was lost, once a worker has seen that it is another."""
        until = time.monotonic() + ACCEPT_S
        while True:
            try:
                self.manage(["accept_cluster", CLUSTER, "--reason", "The file with its state was gone."])
            except StackError:
                if time.monotonic() > until:
                    raise
                time.sleep(1)
            else:
                return

    def sourcing(self) -> list[list[str]]:
        """Return the command that has Quarterdeck ask our Prometheus, which has nothing to tell yet; without one, the
        command that has it no longer ask that of a start before, where nothing answers any more.
        """
        address = self.folder / prometheus.BINARY / "address"
        if self.prometheus_url:
            address.write_text(self.prometheus_url)
            return [["demo_prometheus", CLUSTER, self.prometheus_url]]
        if self._goes_on and address.is_file():
            return [["demo_prometheus", CLUSTER, address.read_text(), "--remove"]]
        return []

    def suggesting(self) -> list[str]:
        """Return the command that makes a pool of each product, whether its nodes were heard of by then or not."""
        return ["suggest_pools", CLUSTER, "--create", "--by-product", "--max-unavailable", "2"]

    def _start_product(self) -> None:
        self._say("web, workers, beat")
        self._run("web", parts.web(self.port, or_another=True))
        for queue in parts.QUEUES:
            self._run(queue, parts.worker(queue))
        self._run("beat", parts.beat(self.folder))

    def _run(self, name: str, command: list[str], **more: str) -> None:
        self._commands[name] = command
        out = self._out(name) if name in ANNOUNCE_THEMSELVES else None
        if out:
            out.unlink(missing_ok=True)
        with tied.signals_held():
            self.children[name] = tied.start(
                name,
                command,
                log=self._log(name),
                stdout=out,
                cwd=self.folder_of(name),
                env={**self.environment, **more},
            )

    def _wait_until(self, name: str, is_true: Callable[[], bool], timeout_s: float = 120.0) -> None:
        until = time.monotonic() + timeout_s
        while not is_true():
            child = self.children[name]
            if child.has_ended or time.monotonic() > until:
                why = "ended" if child.has_ended else f"was not ready in {timeout_s:.0f} s"
                raise StackError(f"{name} {why}:\n{child.last_words()}")
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def _out(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.out"
