"""The demo's command line: what makes no sense is refused before anything starts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from demo.__main__ import parser
from demo.first_steps import first_steps
from demo.parts import Fleet
from tests.demo.terminal import ROOT

WRONG = [
    *(("--nodes", word) for word in ("-1", "many", "2.5", "", "20001", "9" * 5000)),
    *(("--port", word) for word in ("-1", "65536", "http")),
    *(("--speed", word) for word in ("0", "-1", "nan", "inf", "fast")),
    *(("--seed", word) for word in ("-1", "x", "9" * 30)),
]


@pytest.mark.parametrize(("flag", "word"), WRONG)
def test_a_number_that_makes_no_sense_is_refused_with_those_that_do(
    flag: str, word: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit, match="2"):
        parser().parse_args([f"{flag}={word}"])

    said = capsys.readouterr().err
    assert f"argument {flag}" in said
    assert " number from " in said


def test_no_nodes_are_a_number_like_any_other():
    assert parser().parse_args(["--nodes", "0"]).nodes == 0


def demo(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_smoke_of_too_few_nodes_does_not_begin():
    ended = demo("--smoke", "--nodes", "4")

    assert ended.returncode == 2
    assert "needs 16 nodes or more" in ended.stderr


def test_a_folder_that_is_a_file_is_refused_in_a_sentence(tmp_path: Path):
    file = tmp_path / "notes"
    file.write_text("mine")

    ended = demo("--data-dir", str(file))

    assert ended.returncode == 1
    assert "Give another --data-dir" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert file.read_text() == "mine"


@pytest.mark.parametrize(("fleet", "objects"), [("small", ("a100", "h100")), ("cluster-policy", ("cluster-policy",))])
def test_what_is_worth_a_try_names_driver_objects_that_the_fleet_has(fleet: str, objects: tuple[str, ...]):
    steps = first_steps(Fleet(name=fleet))

    taken = {found[1] for text in steps if (found := re.search(r"(?:takes|Take) (\S+) to", text))}
    assert taken == set(objects)


def test_a_still_demo_promises_nothing_that_comes_by_itself():
    still = first_steps(Fleet(), is_still=True)

    assert not [step for step in still if "minute 3" in step]
    assert still[1:] == first_steps(Fleet())[-len(still) + 1 :]
