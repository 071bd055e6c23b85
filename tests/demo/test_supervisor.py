"""`python -m demo` as a person has it: in a terminal, with real signals."""

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from demo.ports import LOOPBACK
from demo.stack import PASSWORD
from demo.visitor import Visitor, wait_until
from tests.demo.terminal import Terminal


def running(folder: Path) -> dict[int, str]:
    """Return the command line of every process that knows the folder, from its words or its environment."""
    mark = os.fsencode(folder)
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, variables = (process / "cmdline").read_bytes(), (process / "environ").read_bytes()
        except OSError:  # it has just ended
            continue
        if mark in words or mark in variables:
            found[int(process.name)] = words.replace(b"\0", b" ").decode()
    return found


def wait_until_nothing_runs(folder: Path, timeout_s: float = 5.0) -> dict[int, str]:
    until = time.monotonic() + timeout_s
    while (left := running(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def test_a_demo_from_its_first_start_to_a_reset(demo: Callable[..., Terminal]):
    """Each start is the whole stack, so one life of a demo shows what it must do at every end."""
    first = on_a_taken_port(demo)
    has_its_folder_to_itself(demo)
    before = seen(first)
    ends_in_time_on_ctrl_c(first)

    second = demo()
    assert seen(second) == before
    leaves_nothing_behind_when_killed(second)

    third = demo("--reset")
    assert seen(third)[0] != before[0]
    ends_with_the_last_words_of_a_part(third)


def test_a_demo_that_is_told_to_end_while_it_starts_leaves_nothing_behind(demo: Callable[..., Terminal]):
    terminal = demo()
    terminal.wait_for("starting")

    terminal.process.terminate()

    assert terminal.process.wait(timeout=20) == 0
    assert running(terminal.folder) == {}


def on_a_taken_port(demo: Callable[..., Terminal]) -> Terminal:
    with socket.create_server((LOOPBACK, 0)) as other:
        taken = other.getsockname()[1]
        terminal = demo("--port", str(taken))
        said = terminal.wait_for("is taken")
        address = terminal.url()

    assert f"Port {taken} is taken" in said
    assert not address.endswith(f":{taken}")
    assert httpx.get(f"{address}/healthz").status_code == 200
    terminal.wait_for("Ctrl-C ends it all")
    return terminal


def has_its_folder_to_itself(demo: Callable[..., Terminal]) -> None:
    other = demo()
    said = other.wait_for("already runs")

    assert "--data-dir" in said
    assert other.process.wait(timeout=5) == 1


def seen(terminal: Terminal) -> tuple[str, dict[str, int]]:
    """The cluster's UID, and the key of each node's row."""
    with Visitor(terminal.url(), "viewer") as viewer:
        viewer.sign_in(PASSWORD)
        nodes = wait_until(lambda: viewer.all("/api/v1/nodes"), what="nodes", timeout_s=60)
        return viewer.all("/api/v1/clusters")[0]["uid"], {node["uid"]: node["id"] for node in nodes}


def ends_in_time_on_ctrl_c(terminal: Terminal) -> None:
    began = time.monotonic()
    terminal.process.send_signal(signal.SIGINT)
    status = terminal.process.wait(timeout=10)

    assert time.monotonic() - began < 5
    assert status == 0
    assert running(terminal.folder) == {}


def leaves_nothing_behind_when_killed(terminal: Terminal) -> None:
    assert len(running(terminal.folder)) >= 7

    os.kill(terminal.process.pid, signal.SIGKILL)

    assert wait_until_nothing_runs(terminal.folder) == {}


def ends_with_the_last_words_of_a_part(terminal: Terminal) -> None:
    worker = next(pid for pid, words in running(terminal.folder).items() if "worker -Q rollouts" in words)

    os.kill(worker, signal.SIGKILL)

    assert "rollouts ended with -9" in terminal.wait_for("ended with", timeout_s=10)
    assert terminal.process.wait(timeout=10) == 1
    assert wait_until_nothing_runs(terminal.folder) == {}
