"""Watches the parts of a stack: tells where it is, starts again what dies, ends all of it on Ctrl-C."""

import fcntl
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO

from demo import browser, kept, parts, prometheus, tied
from demo.chosen import command_for
from demo.first_steps import first_steps
from demo.kept import NotOursError
from demo.parts import Fleet
from demo.prometheus import NoPrometheusError
from demo.reloading import Changes
from demo.script import NoAnswerError, Script
from demo.settings import contract, write_for_shell
from demo.stack import CLUSTER, PASSWORD, Stack, StackError

LOOK_EVERY_S = 0.5
OURS = ("web", "observe", "rollouts", "default", "beat")  # what runs the product's code
PAST_USAGE = "past-usage"  # the part that ends by itself
STARTS_AGAIN = 3  # a part that dies oftener does not come up


class AlreadyRunningError(Exception):
    """Another demo has this folder."""


class StopRequested(BaseException):
    """A person or the system asked the demo to end.

    Like KeyboardInterrupt, it passes every handler of errors. KeyboardInterrupt itself will not do: where it leaves an
    `exec` of a text, as in the body of a named tuple, Python ends the process by SIGINT, also if it is caught later.
    """


def run(
    base: Path,
    fleet: Fleet,
    *,
    port: int,
    reset: bool,
    reload: bool,
    with_prometheus: bool = False,
    is_still: bool = False,
    opens_browser: bool = False,
) -> int:
    """Run the demo to its end and return its exit status: 0 when a person ended it. `is_still`: nothing happens in it
    that nobody does.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, request_stop)  # also where a shell started us without Ctrl-C
    try:
        if with_prometheus:
            prometheus.binary()
        folder = made(kept.folder_for(base, fleet))
        with only_one(folder / kept.LOCK):
            prepare(folder, fleet, reset=reset)
            with Stack(folder, fleet, port=port, debug=reload, with_prometheus=with_prometheus, say=starting) as stack:
                introduce(stack, port, is_still=is_still)
                stack.start_beside(PAST_USAGE, parts.past_usage(CLUSTER))
                if opens_browser:
                    browser.show(stack.url)
                script = None if is_still else Script(stack.simulator_url, fleet.seed, say=tell)
                return watch(stack, script, Changes() if reload else None)
    except (AlreadyRunningError, NotOursError, StackError, NoPrometheusError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except StopRequested:
        return 0


def request_stop(_number: int, _frame: FrameType | None) -> None:
    """Answer a signal that asks the demo to end."""
    raise StopRequested


def made(folder: Path) -> Path:
    """Return the folder, once it is there and ours to write in."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / kept.LOCK).touch()
    except OSError as error:
        raise NotOursError(f"{folder} cannot be used: {error.strerror}. Give another --data-dir.") from error
    return folder


@contextmanager
def only_one(file: Path) -> Iterator[None]:
    """Hold the folder's lock. The kernel lets go of it with us, so none is ever left behind."""
    with file.open("a+") as lock:
        if not taken(lock):
            raise AlreadyRunningError(
                f"A demo already runs on {file.parent}. End it, or give this one another --data-dir."
            )
        yield


def taken(lock: IO[str], tries: int = 5) -> bool:
    """Say whether the lock is ours now. Who only looks whether we run has it for a moment."""
    for _ in range(tries):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.1)
        else:
            return True
    return False


def prepare(folder: Path, fleet: Fleet, *, reset: bool) -> None:
    """Go on with the fleet and the database of the last time, unless a person asks to forget them."""
    print(f"This fleet is kept in {folder}.", flush=True)
    clear(folder, kept.OF_ONE_RUN)
    if reset:
        clear(folder, kept.OF_ONE_FLEET)
    elif differs := kept.misfit(folder):
        aside = kept.put_aside(folder, now=datetime.now(UTC))
        print(
            f"Its database was made by another version of Quarterdeck: {differs} is not here, or not as it was.\n"
            f"It is kept in {aside}, and this version begins with a new one.",
            flush=True,
        )
    elif kept.mark_in(folder):
        print("Going on with it as it was the last time; --reset forgets it, and what was added to it.", flush=True)
    kept.note(folder, fleet)


def clear(folder: Path, names: Iterable[str]) -> None:
    """Remove these."""
    for path in (folder / name for name in names):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def starting(what: str) -> None:
    """Tell what is being started."""
    print(f"  starting {what} …", flush=True)


def tell(what: str) -> None:
    """Tell what happens in the cluster."""
    print(f"  {what}", flush=True)


def introduce(stack: Stack, port: int, *, is_still: bool) -> None:
    """Tell where it is, who may sign in, and what is worth a try."""
    write_for_shell(
        stack.folder / kept.ENVIRONMENT,
        {name: stack.environment[name] for name in contract_names(stack)},
    )
    if port and stack.port != port:
        print(f"\nPort {port} is taken: this demo has {stack.port}.")
    print(f"\nQuarterdeck is at {stack.url}\n")
    for role in ("viewer", "operator", "approver", "admin"):
        print(f"  {role:<9} password {PASSWORD}")
    print("\nEverybody knows that password: the demo listens on this machine's loopback address only.\n")
    for number, text in enumerate(first_steps(stack.fleet, is_still=is_still), start=1):
        print(f"  {number}. {text}")
    print(f"\nkubectl --kubeconfig {stack.kubeconfig} get nodes   shows the same fleet from outside.")
    print(f"{command_for(stack.folder)} doctor   asks its clusters and workers how they are.")
    if stack.prometheus_url:
        print(f"Prometheus is at {stack.prometheus_url}: it scrapes the fleet's exporters every 15 s.")
    print(f"Logs: {stack.folder / 'logs'}. Ctrl-C ends it all.", flush=True)


def contract_names(stack: Stack) -> list[str]:
    """Return the names of the product's own variables."""
    return list(contract(stack.folder, "", "", debug=False))


def watch(stack: Stack, script: Script | None, changes: Changes | None) -> int:
    """Look after the parts until a person ends them. What dies of ours starts again; without the rest the demo ends."""
    deaths: Counter[str] = Counter()
    try:
        while True:
            time.sleep(LOOK_EVERY_S)
            for child in stack.ended():
                if child.name == PAST_USAGE:
                    end_past_usage(stack, child)
                    continue
                report(child)
                deaths[child.name] += 1
                if child.name not in OURS or deaths[child.name] > STARTS_AGAIN:
                    print("\nThe demo ends with it.", file=sys.stderr)
                    return 1
                start_again(stack, child)
            if script:
                with suppress(NoAnswerError):  # a simulator that has ended is told of above, at the next look
                    script.play(time.monotonic())
            if changes and changes.seen():
                restart_ours(stack)
    except StopRequested:
        print("\nStopping …", flush=True)
        return 0


def report(child: tied.Child) -> None:
    """Say what a part died of, with the end of its log."""
    print(f"\n{child.name} ended of {child.cause}. All of its log: {child.log}. Its last lines:\n{child.last_words()}")


def end_past_usage(stack: Stack, child: tied.Child) -> None:
    """Tell that the days before are recorded, or why they are not: the demo goes on without them."""
    del stack.children[child.name]
    if child.process.returncode:
        report(child)
    else:
        tell("Usage and cost: the two weeks before are recorded, made up from the pods of now.")


def start_again(stack: Stack, child: tied.Child) -> None:
    """Count it where `/metrics` reads it, and start the part anew."""
    stack.restart(child.name)
    stack.manage(["note_process_end", child.name, child.cause])
    print(f"\n{child.name} runs again.", flush=True)


def restart_ours(stack: Stack) -> None:
    """Start again what runs the product's code."""
    print("A file changed: web, workers and beat start again.", flush=True)
    for name in OURS:
        stack.restart(name)
