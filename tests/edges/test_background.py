import os
import subprocess
import sys
import threading

import pytest

from edges.background import Background
from tests.patience import PATIENCE_S

COMMAND = """
import sys
from edges.background import Background
Background("last words", most_waiting=9).send(lambda: print("sent", flush=True))
"""
STUCK = COMMAND.replace('print("sent", flush=True)', "__import__('threading').Event().wait()")


@pytest.fixture
def background() -> Background:
    return Background("tested", most_waiting=2)


def test_it_is_done_by_a_thread_of_that_name(background):
    by, is_done = [], threading.Event()

    background.send(lambda: (by.append(threading.current_thread().name), is_done.set()))

    assert is_done.wait(PATIENCE_S)
    assert by == ["tested"]


def test_what_fails_costs_nobody_the_next(background, capsys):
    is_done = threading.Event()

    background.send(lambda: 1 / 0, task="divide")
    background.send(is_done.set)

    assert is_done.wait(PATIENCE_S)


def test_more_than_may_wait_is_dropped_at_once(background):
    may_go, done = threading.Event(), []
    has_begun = threading.Event()

    background.send(lambda: (has_begun.set(), may_go.wait(PATIENCE_S)))
    assert has_begun.wait(PATIENCE_S)
    for number in range(5):
        background.send(lambda number=number: done.append(number))
    may_go.set()
    is_through = threading.Event()
    while not is_through.wait(0.01):
        background.send(is_through.set)

    assert done == [0, 1]


def test_a_process_that_was_forked_has_a_thread_of_its_own(background):
    background.send(lambda: None)
    read, write = os.pipe()

    if (child := os.fork()) == 0:
        background.send(lambda: os.write(write, b"sent"))
        is_through = threading.Event()
        background.send(is_through.set)
        is_through.wait(PATIENCE_S)
        os._exit(0)

    assert os.read(read, 4) == b"sent"
    os.waitpid(child, 0)


@pytest.mark.parametrize(("command", "said"), [(COMMAND, "sent\n"), (STUCK, "")])
def test_a_command_that_ends_waits_for_its_last_words_but_not_for_ever(command, said):
    ended = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )

    assert (ended.returncode, ended.stdout) == (0, said)
