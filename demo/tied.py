"""Processes that end with the one that started them, however that one ends."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
FAULT = "Fatal Python error"
OF_A_FAULT = {"SIGSEGV", "SIGFPE", "SIGABRT", "SIGBUS", "SIGILL"}  # what faulthandler writes for
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Child:
    """A process of ours, under the name that a person knows it by."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def last_words(self, lines: int = 20) -> str:
        """Return the end of its log; of a process that a fault ended, what Python said of that first."""
        with suppress(FileNotFoundError):
            words = self.log.read_text(errors="replace")
            fault = words.rfind(FAULT)
            if self.has_ended and self.cause in OF_A_FAULT and fault >= 0:
                return "\n".join(words[fault:].splitlines()[:lines])
            return "\n".join(words.splitlines()[-lines:])
        return ""

    @property
    def cause(self) -> str:
        """Return the signal that ended it, or its exit code."""
        code = self.process.returncode
        return signal.Signals(-code).name if code < 0 else f"exit {code}"

    def stop(self, timeout_s: float = 3.0) -> None:
        """Ask it to end; end it when it takes longer than that."""
        ask_to_stop([self])
        wait_for_end([self], timeout_s)


def start(
    name: str,
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdout: Path | None = None,
    user: str | None = None,
    last_signal: signal.Signals = signal.SIGKILL,
) -> Child:
    """Start a child in a session of its own: a Ctrl-C in the terminal is the supervisor's to answer, in its order.

    The kernel watches the *thread* that calls this, not only its process: it must live as long as the child should.
    """
    with log.open("ab") as written, (stdout or log).open("ab") as answered:
        process = subprocess.Popen(
            command,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=answered,
            stderr=written,
            start_new_session=True,
            user=user,
            extra_groups=[] if user else None,
            preexec_fn=die_with(os.getpid(), last_signal),
        )
    return Child(name, process, log)


@contextmanager
def signals_held() -> Iterator[None]:
    """Let a signal that asks us to end wait until a child that is being started is in the list of children."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with(parent: int, last_signal: signal.Signals) -> Callable[[], None]:
    """Return what the child runs before it becomes its program; the signal survives exec and reaches no grandchild."""

    def tie() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a child of a parent that holds its signals must not
        if LIBC is not None:
            LIBC.prctl(PR_SET_PDEATHSIG, last_signal)
        # The parent may have gone between fork and prctl: then the kernel would never tell us.
        if os.getppid() != parent:
            os._exit(1)

    return tie


def ask_to_stop(children: Sequence[Child]) -> None:
    """Send SIGTERM to those that still run."""
    for child in children:
        if not child.has_ended:
            child.process.terminate()


def wait_for_end(children: Sequence[Child], timeout_s: float) -> None:
    """Wait this long for all of them together, then end what is left."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until and not all(child.has_ended for child in children):
        time.sleep(0.02)
    for child in children:
        if not child.has_ended:
            child.process.kill()
    for child in children:
        child.process.wait()
