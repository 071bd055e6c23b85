"""The suite tries the same examples in every run, and `bin/test hunt` others."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

pytestmark = pytest.mark.nightly
ROOT = Path(__file__).parents[1]
BROKEN = """
from hypothesis import given, strategies as st

@given(st.integers(0, 10_000))
def test_no_number_is_big(number):
    assert number < 5_000
"""
COUNTING = """
import pytest
from hypothesis import given, settings, strategies as st

@pytest.mark.parametrize("letter", "ab")
@settings(max_examples=10)
@given(number=st.integers())
def test_a_number(letter, number):
    with open("{tried}", "a") as tried:
        tried.write(letter)
"""


def hunt(folder: Path, test: str, *, minutes: float = 5) -> "subprocess.CompletedProcess[str]":
    (folder / "test_numbers.py").write_text(test)
    asked = [
        "--minutes",
        str(minutes),
        "--rounds",
        "1",
        "--keep",
        str(folder / "kept"),
        str(folder / "test_numbers.py"),
    ]
    words = [sys.executable, "-m", "tests.hunt", *asked]
    # As `bin/test` calls it; these tests need no Django, and three processes would each set it up.
    named = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return subprocess.run(words, cwd=ROOT, env=named, capture_output=True, text=True, check=False)


def test_the_suite_tries_the_same_examples_in_every_run():
    assert (settings().derandomize, settings().deadline, settings().database) == (True, None, None)


def test_a_hunt_says_what_it_found_and_with_which_seed(tmp_path):
    ended = hunt(tmp_path, BROKEN)

    assert ended.returncode == 1, ended.stdout + ended.stderr
    (log,) = (tmp_path / "kept").iterdir()
    assert f"seed {log.stem}" in ended.stdout
    assert "number=5000," in ended.stdout
    assert "1 round: 1 test tried; 1 failed." in ended.stdout


def test_a_hunt_tries_five_times_as_many(tmp_path):
    tried = tmp_path / "tried"

    hunt(tmp_path, COUNTING.format(tried=tried))

    assert Counter(tried.read_text()) == {"a": 50, "b": 50}


def test_a_hunt_that_finds_nothing_ends_well(tmp_path):
    ended = hunt(tmp_path, BROKEN.replace("< 5_000", "< 50_000"))

    assert (ended.returncode, ended.stdout) == (0, "1 round: 1 test tried; 0 failed.\n")


def test_a_hunt_ends_when_its_time_is_up(tmp_path):
    """What has not begun by then is no longer tried, and it says so."""
    ended = hunt(tmp_path, BROKEN, minutes=0.001)

    assert (ended.returncode, ended.stdout) == (
        0,
        "1 round: 0 tests tried, 1 of the last round not, for the time was up; 0 failed.\n",
    )


def test_a_hunt_that_cannot_begin_does_not_end_well(tmp_path):
    assert hunt(tmp_path, "not Python").returncode != 0
