import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from demo import tied
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
PARENT = """
import sys, time
from pathlib import Path
from demo import tied
child = tied.start("sleeper", ["sleep", "600"], log=Path(sys.argv[1]), env={"PATH": "/usr/bin:/bin"})
print(child.pid, flush=True)
time.sleep(600)
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"


def is_running(pid: int) -> bool:
    """Say whether the process does anything still; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> bool:
    until = time.monotonic() + PATIENCE_S
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_running(pid)


def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path):
    command = [sys.executable, "-c", PARENT, str(tmp_path / "log")]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)

    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()

    assert wait_until_gone(child)


def test_a_child_that_ignores_the_polite_signal_is_ended(tmp_path: Path):
    log = tmp_path / "log"
    child = tied.start("stubborn", [sys.executable, "-c", STUBBORN], log=log, env=os.environ)
    while not log.read_text():
        time.sleep(0.01)

    child.stop(timeout_s=0.2)

    assert child.process.returncode == -signal.SIGKILL


def test_last_words_are_the_end_of_the_log(tmp_path: Path):
    log = tmp_path / "log"
    child = tied.start("counter", ["seq", "100"], log=log, env=os.environ)
    child.process.wait(timeout=PATIENCE_S)

    words = child.last_words(lines=2)

    assert words == "99\n100"


def test_several_that_ignore_the_polite_signal_share_one_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    children = [
        tied.start(str(number), [sys.executable, "-c", STUBBORN], log=tmp_path / str(number), env=os.environ)
        for number in range(3)
    ]
    while not all(child.log.read_text() for child in children):
        time.sleep(0.01)

    waits: list[float] = []
    monkeypatch.setattr(tied, "time", SimpleNamespace(monotonic=lambda: sum(waits), sleep=waits.append))
    tied.ask_to_stop(children)
    tied.wait_for_end(children, timeout_s=3.0)

    assert sum(waits) < 3.1  # one after another it would be nine
    assert all(child.has_ended for child in children)
