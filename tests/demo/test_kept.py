"""What a start finds in its folder, and what it goes on with; --reset forgets all of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo import kept
from demo.parts import STATE, Fleet
from demo.supervisor import prepare

FLEET = Fleet(nodes=4, is_kept=True)


def used(folder: Path, fleet: Fleet) -> None:
    prepare(folder, fleet, reset=False)
    for name in (STATE, "quarterdeck.sqlite3", "kubeconfig"):
        (folder / name).write_text("x")


def test_goes_on_with_the_same_fleet(tmp_path: Path):
    used(tmp_path, FLEET)

    prepare(tmp_path, FLEET, reset=False)

    assert {file.name for file in tmp_path.iterdir()} == {STATE, "quarterdeck.sqlite3", kept.FILE}


@pytest.mark.parametrize("other", [{"nodes": 8}, {"seed": 2}, {"name": "mixed"}])
def test_another_fleet_begins_anew(tmp_path: Path, other: dict[str, Any], capsys: pytest.CaptureFixture[str]):
    used(tmp_path, FLEET)

    prepare(tmp_path, replace(FLEET, **other), reset=False)

    assert {file.name for file in tmp_path.iterdir()} == {kept.FILE}
    assert "a new one begins" in capsys.readouterr().out


def test_older_tables_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    used(tmp_path, FLEET)
    monkeypatch.setattr(kept, "ROOT", tmp_path)

    prepare(tmp_path, FLEET, reset=False)

    assert not (tmp_path / "quarterdeck.sqlite3").exists()


def test_a_reset_forgets_all_but_what_is_not_ours(tmp_path: Path):
    used(tmp_path, FLEET)
    (tmp_path / "notes").write_text("mine")

    prepare(tmp_path, FLEET, reset=True)

    assert {file.name for file in tmp_path.iterdir()} == {kept.FILE, "notes"}
