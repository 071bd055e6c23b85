"""The crash bench runs, small: it finds nothing in the engine as it is, and something with each of its guards out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.crashing.figures import FIGURES

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.nightly
SEED = 5


def test_nothing_is_found_in_a_few_schedules():
    ended = bench("--schedules", "30", "--sigkills", "0", "--processes", "1", "--uncut")

    figures = {line["name"]: line for line in map(json.loads, ended.stdout.splitlines())}
    assert ended.returncode == 0, ended.stderr
    assert set(figures) == {"reference_ms", "schedules", "seams", "sigkills", "sigstops", *FIGURES}
    assert figures["schedules"]["value"] == 30
    assert_cuts_gaps_first(figures["seams"], ended.stderr)
    assert f"seed {SEED}" in ended.stderr


def assert_cuts_gaps_first(seams: dict, told: str) -> None:
    """Every second of the thirty cuts one, all of them gaps; each that is left is told of."""
    assert seams["cut"] == seams["gaps_cut"] == 15
    uncut = [line for line in told.splitlines() if line.startswith("uncut")]
    assert len(uncut) == len(set(uncut)) == seams["value"] - seams["cut"]
    assert len([line for line in uncut if line.startswith("uncut, a gap: ")]) == seams["gaps"] - 15


def test_without_one_of_its_guards_it_fails_and_says_how_to_see_it_again():
    """That it finds each of them: `test_crash_plants.py`."""
    ended = bench("--schedules", "200", "--sigkills", "0", "--processes", "1", "--plant", "stop")

    assert ended.returncode != 0
    assert "--plant stop" in ended.stderr


def test_a_canary_that_is_another_one_since_a_node_joined_is_no_release_without_approval():
    """A draft chooses its canary when it is started: a node had joined since the world was made."""
    ended = bench("--schedule", "49", seed=429252434)

    assert ended.returncode == 0, ended.stdout[-500:]


def bench(*words: str, seed: int = SEED) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.crash", "--seed", str(seed), "--few", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
