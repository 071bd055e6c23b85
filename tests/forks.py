"""Runs the tests of one collection in several processes: `-p tests.forks --forks N`.

Each process of pytest-xdist imports and collects by itself, 22 s of CPU for the stackless tests of a fresh clone. Here
the process that collected forks. Each fork takes whole files, or groups of `tests.processes`, from one queue.
"""

import os
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.processes import GROUPS, scope_of

NUMBER = struct.Struct("=I")  # of a group, in the queue: a pipe gives each to one reader
DONE = 97  # the exit status of a fork that ran all it took; a test that leaves by itself has another
COSTLY = 10  # a test with an API server or a stack takes as long as so many others


@dataclass
class Fork:
    """A process, and the test that it reported last."""

    pid: int
    test: str = "its start"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=0, metavar="N", help="run the tests in N forks after the collection")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if session.testsfailed or session.config.option.collectonly or not session.config.getoption("forks"):
        return None
    groups = groups_of(session.items)
    queue = queue_of(len(groups))
    # Made before the first fork: a fork would keep it as its own.
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    forks: dict[Any, Fork] = {}
    try:
        for number in range(session.config.getoption("forks")):
            reader, writer = Pipe(duplex=False)
            sys.stdout.flush()
            sys.stderr.flush()
            if not (pid := os.fork()):
                run_fork(session, f"gw{number}", taken(groups, queue), writer)
            writer.close()
            forks[reader] = Fork(pid)
        while forks:
            for reader in wait(list(forks)):
                receive(session, reader, forks)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
    finally:
        os.close(queue)
        for fork in forks.values():
            os.kill(fork.pid, signal.SIGTERM)
            os.waitpid(fork.pid, 0)
    return True


def groups_of(items: list[pytest.Item]) -> list[list[pytest.Item]]:
    """Returns the tests that stay together, those that take longest first: each group has a stack or a browser."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(scope_of(item.nodeid), []).append(item)
    by_weight = sorted(groups, key=lambda scope: (scope not in GROUPS, -sum(map(weight, groups[scope]))))
    return [groups[scope] for scope in by_weight]


def weight(item: pytest.Item) -> int:
    return COSTLY if item.get_closest_marker("rounds") or item.get_closest_marker("flow") else 1


def queue_of(groups: int) -> int:
    """Returns the end that forks read: the number of each group, once for all of them."""
    reader, writer = os.pipe()
    os.write(writer, b"".join(map(NUMBER.pack, range(groups))))
    os.close(writer)
    return reader


def taken(groups: list[list[pytest.Item]], queue: int) -> Iterator[pytest.Item]:
    while number := os.read(queue, NUMBER.size):
        yield from groups[NUMBER.unpack(number)[0]]


def receive(session: pytest.Session, reader: Connection, forks: dict[Any, Fork]) -> None:
    """Passes one message of a fork on, or notes its end."""
    hook = session.config.hook
    try:
        report, warned = reader.recv()
    except EOFError:
        fork = forks.pop(reader)
        _, status = os.waitpid(fork.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != DONE:
            session.shouldfail = f"a process of tests ended with {code} in or after {fork.test}"
    else:
        if report:
            forks[reader].test = report["nodeid"]
            report = hook.pytest_report_from_serializable(config=session.config, data=report)
            hook.pytest_runtest_logreport(report=report)
        else:
            warning, about = warned
            warning = warnings.WarningMessage(*warning)
            hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": warning, **about})


def run_fork(session: pytest.Session, name: str, items: Iterator[pytest.Item], parent: Connection) -> NoReturn:
    """Runs tests until none is left. Nothing of the parent's end runs here: reports, folders and exit handlers."""
    status = 1
    try:
        become_worker(session.config, name)
        session.config.pluginmanager.register(ForkReporter(session.config, parent))
        item = next(items, None)
        while item and not session.shouldfail:
            following = next(items, None)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            item = following
        status = DONE
    except BaseException:  # noqa: BLE001 - whatever it is, the parent goes on elsewhere
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def become_worker(config: pytest.Config, name: str) -> None:
    """Gives this process a database, a folder and captured output of its own, by the names that pytest-xdist uses."""
    os.environ["PYTEST_XDIST_WORKER"] = name
    config.workerinput = {"workerid": name}  # type: ignore[attr-defined]
    folders = config._tmp_path_factory  # type: ignore[attr-defined]
    folders._basetemp = folders.getbasetemp() / name
    folders._basetemp.mkdir(mode=0o700)
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.get_terminal_writer()._file = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process


class ForkReporter:
    """Sends the parent what happens in a fork."""

    def __init__(self, config: pytest.Config, parent: Connection) -> None:
        self._config, self._parent = config, parent

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._parent.send((data, None))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        it = warning_message  # its message may hold what cannot be sent
        warning = (str(it.message), it.category, it.filename, it.lineno)
        self._parent.send((None, (warning, {"when": when, "nodeid": nodeid, "location": location})))
