"""Which demo's database `bin/manage` works on."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from demo.chosen import chosen, command_for
from demo.kept import ENVIRONMENT, LOCK, folder_for, note
from demo.parts import Fleet
from demo.supervisor import only_one

SMALL = Fleet(nodes=4)
MIXED = replace(SMALL, name="mixed")


def came_up(base: Path, fleet: Fleet, *, at: int) -> Path:
    folder = folder_for(base, fleet)
    folder.mkdir(exist_ok=True)
    note(folder, fleet)
    (folder / ENVIRONMENT).touch()
    os.utime(folder / ENVIRONMENT, (at, at))
    return folder


def test_without_a_demo_nothing_is_chosen(tmp_path: Path):
    assert chosen({}, tmp_path / "demo") == (None, "")


def test_one_demo_needs_no_words(tmp_path: Path):
    folder = came_up(tmp_path, SMALL, at=1)

    assert chosen({}, tmp_path) == (folder / ENVIRONMENT, "")


def test_a_demo_that_never_came_up_is_none(tmp_path: Path):
    note(tmp_path, SMALL)

    assert chosen({}, tmp_path) == (None, "")


def test_of_several_it_is_the_last_started(tmp_path: Path):
    small, mixed = came_up(tmp_path, SMALL, at=1), came_up(tmp_path, MIXED, at=2)

    file, words = chosen({}, tmp_path)

    assert file == mixed / ENVIRONMENT
    assert f"the demo in {mixed}, the last started" in words
    assert f"QUARTERDECK_DATA_DIR={small} bin/manage" in words


def test_of_several_it_is_the_one_that_runs(tmp_path: Path):
    small, _ = came_up(tmp_path, SMALL, at=1), came_up(tmp_path, MIXED, at=2)

    with only_one(small / LOCK):
        file, words = chosen({}, tmp_path)

    assert file == small / ENVIRONMENT
    assert "which runs" in words
    assert chosen({}, tmp_path)[0] != file


def test_of_several_that_run_it_is_the_last_started(tmp_path: Path):
    small, mixed = came_up(tmp_path, SMALL, at=1), came_up(tmp_path, MIXED, at=2)

    with only_one(small / LOCK), only_one(mixed / LOCK):
        file, words = chosen({}, tmp_path)

    assert file == mixed / ENVIRONMENT
    assert "the last started of those that run" in words


def test_to_look_does_not_keep_a_demo_from_starting(tmp_path: Path):
    folder = came_up(tmp_path, SMALL, at=1)
    chosen({}, tmp_path)

    with only_one(folder / LOCK):
        assert chosen({}, tmp_path)[0] == folder / ENVIRONMENT


def test_a_folder_that_is_named_is_that_demos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    came_up(tmp_path, SMALL, at=1)
    (tmp_path / "other").mkdir()
    other = came_up(tmp_path / "other", SMALL, at=0)
    monkeypatch.chdir(tmp_path)

    assert chosen({"QUARTERDECK_DATA_DIR": str(other)}, tmp_path) == (other / ENVIRONMENT, "")
    assert chosen({"QUARTERDECK_DATA_DIR": "other"}, tmp_path) == (other / ENVIRONMENT, "")


def test_a_demo_says_what_to_type_for_its_own_database(tmp_path: Path):
    kept, apart = came_up(tmp_path, SMALL, at=1), tmp_path / "a part"
    apart.mkdir()

    assert command_for(kept, tmp_path) == "bin/manage"
    assert command_for(apart, tmp_path) == f"QUARTERDECK_DATA_DIR='{apart}' bin/manage"


@pytest.mark.parametrize(
    "named",
    [
        {"DATABASE_URL": "postgres://db.example/quarterdeck"},
        {"DJANGO_SETTINGS_MODULE": "config.settings.prod"},
        {"QUARTERDECK_DATA_DIR": "/var/lib/quarterdeck"},
    ],
)
def test_an_installation_of_ones_own_is_never_taken_for_a_demo(tmp_path: Path, named: dict[str, str]):
    came_up(tmp_path, SMALL, at=1)

    assert chosen(named, tmp_path) == (None, "")
    assert chosen({**named, "QUARTERDECK_DATA_DIR": str(tmp_path), "DATABASE_URL": "x"}, tmp_path) == (None, "")
