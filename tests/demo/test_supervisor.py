"""`python -m demo` as a person has it: in a terminal, with real signals."""

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from demo.ports import LOOPBACK
from demo.stack import PASSWORD
from demo.visitor import Visitor, wait_until
from tests.demo.terminal import Terminal
from tests.patience import PATIENCE_S


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


def pid_of(words: str, terminal: Terminal) -> int:
    return next(pid for pid, command in running(terminal.folder).items() if words in command)


def wait_until_nothing_runs(folder: Path, timeout_s: float = PATIENCE_S) -> dict[int, str]:
    until = time.monotonic() + timeout_s
    while (left := running(folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def test_a_demo_from_its_start_to_its_end(demo: Callable[..., Terminal]):
    """Each start is the whole stack, so one start shows what a demo does until it ends."""
    first = on_a_taken_port(demo)
    has_its_folder_to_itself(demo)
    says_of_what_a_worker_died_and_starts_it_again(first)
    ends_on_ctrl_c(first)


@pytest.mark.nightly
def test_the_next_start_goes_on_with_what_there_is(demo: Callable[..., Terminal]):
    first = demo()
    before = seen(first)
    ends_on_ctrl_c(first)

    second = demo()
    assert seen(second) == before
    ends_with_its_cluster(second)


@pytest.mark.nightly
def test_a_demo_that_is_killed_and_one_that_forgets(demo: Callable[..., Terminal]):
    first = demo()
    before = seen(first)
    leaves_nothing_behind_when_killed(first)

    second = demo("--reset")
    assert seen(second)[0] != before[0]
    ends_on_ctrl_c(second)


def test_a_demo_that_is_told_to_end_while_it_starts_leaves_nothing_behind(demo: Callable[..., Terminal]):
    terminal = demo()
    terminal.wait_for("starting")

    terminal.process.terminate()

    assert terminal.process.wait(timeout=PATIENCE_S) == 0
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
    assert other.process.wait(timeout=PATIENCE_S) == 1


def seen(terminal: Terminal) -> tuple[str, dict[str, int]]:
    """The cluster's UID, and the key of each node's row."""
    with Visitor(terminal.url(), "viewer") as viewer:
        viewer.sign_in(PASSWORD)
        nodes = wait_until(lambda: viewer.all("/api/v1/nodes"), what="nodes", timeout_s=PATIENCE_S)
        return viewer.all("/api/v1/clusters")[0]["uid"], {node["uid"]: node["id"] for node in nodes}


def ends_on_ctrl_c(terminal: Terminal) -> None:
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.process.wait(timeout=PATIENCE_S) == 0
    assert running(terminal.folder) == {}


def leaves_nothing_behind_when_killed(terminal: Terminal) -> None:
    assert len(running(terminal.folder)) >= 7

    os.kill(terminal.process.pid, signal.SIGKILL)

    assert wait_until_nothing_runs(terminal.folder) == {}


def says_of_what_a_worker_died_and_starts_it_again(terminal: Terminal) -> None:
    died = pid_of("worker -Q observe", terminal)

    os.kill(died, signal.SIGSEGV)

    said = terminal.wait_for("ended of")
    assert "observe ended of SIGSEGV" in said
    assert str(terminal.folder / "logs" / "observe.log") in said
    terminal.wait_for("Fatal Python error: Segmentation fault")
    terminal.wait_for("observe runs again")
    assert pid_of("worker -Q observe", terminal) != died
    with Visitor(terminal.url(), "viewer") as viewer:
        viewer.sign_in(PASSWORD)
        assert (
            'quarterdeck_process_ends_total{cause="SIGSEGV",process="observe"} 1.0' in viewer.http.get("/metrics").text
        )


def ends_with_its_cluster(terminal: Terminal) -> None:
    os.kill(pid_of("-m simulator", terminal), signal.SIGKILL)

    assert "simulator ended of SIGKILL" in terminal.wait_for("ended of")
    assert terminal.process.wait(timeout=PATIENCE_S) == 1
    assert wait_until_nothing_runs(terminal.folder) == {}
