"""Tests in several forks of the process that collected them."""

import subprocess
import sys
from pathlib import Path

import pytest

from demo.settings import ROOT

SAYS = """
import os, warnings, pytest
@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    yield tmp_path_factory.mktemp("kept")
    print("given back")
@pytest.mark.parametrize("number", range(3))
def test_one(number, kept):
    print(f"{__name__} says {number} in {kept.parent.name}")
    warnings.warn("old", DeprecationWarning)
    assert number != 2, "two"
"""


def run(folder: Path, *given: str) -> tuple[int, str]:
    """Runs the tests of this folder in two forks; returns the exit status and the output."""
    plugins = ("-p", "tests.forks", "-p", "no:django", "-p", "no:cacheprovider", "-c", "/dev/null")
    command = [sys.executable, "-m", "pytest", *plugins, "--forks", "2", "--rootdir", str(folder), str(folder), *given]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize("given", [(), ("-x",)], ids=["all", "to the first failure"])
def test_each_failure_is_reported_with_its_own_output(tmp_path: Path, given: tuple[str, ...]) -> None:
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(SAYS)
    status, said = run(tmp_path, *given)
    assert status == 1
    if given:
        assert "stopping after 1 failures" in said
        return
    assert "2 failed, 4 passed, 6 warnings" in said
    for name in ("test_a", "test_b"):
        (failure,) = (part for part in said.split("test_one[2] ___")[1:] if f"{name} says 2 in gw" in part)
        assert failure.count(" in gw") == 1
        assert "given back" in failure


@pytest.mark.parametrize("code", [7, 0])
def test_a_fork_that_ends_before_its_tests_fails_the_run(tmp_path: Path, code: int) -> None:
    (tmp_path / "test_a.py").write_text(f"import os\ndef test_one():\n    os._exit({code})\n")
    (tmp_path / "test_b.py").write_text("def test_two():\n    pass\n")
    status, said = run(tmp_path)
    assert status == 1
    assert f"a process of tests ended with {code} in or after test_a.py::test_one" in said
