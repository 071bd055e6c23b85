"""What a start finds in its folder, and goes on with. Only --reset forgets, and only what is of its own fleet."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo import kept
from demo.kept import ASIDE, DATABASE, FILE, NotOursError, folder_for
from demo.parts import STATE, Fleet
from demo.supervisor import prepare

FLEET = Fleet(nodes=4, is_kept=True)
MIXED = replace(FLEET, name="mixed")
FIRST = {"fleet.0001_initial": "a"}
NAMES = st.sampled_from([*kept.OF_ONE_RUN, *kept.OF_ONE_FLEET, "notes", "lock"])


def start(base: Path, fleet: Fleet, *, reset: bool = False) -> Path:
    folder = folder_for(base, fleet)
    folder.mkdir(exist_ok=True)
    prepare(folder, fleet, reset=reset)
    return folder


def used(base: Path, fleet: Fleet) -> Path:
    """A folder in which the fleet ran, and a person added something."""
    folder = start(base, fleet)
    for name in (STATE, DATABASE, "kubeconfig"):
        (folder / name).write_text(f"{name} of {fleet.name}")
    return folder


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_goes_on_with_the_same_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    used(tmp_path, FLEET)

    assert start(tmp_path, FLEET) == tmp_path

    assert names(tmp_path) == {STATE, DATABASE, FILE}
    assert "Going on" in capsys.readouterr().out


@pytest.mark.parametrize("other", [{"nodes": 8}, {"nodes": 0}, {"seed": 2}, {"name": "mixed"}])
def test_another_fleet_has_a_folder_of_its_own(tmp_path: Path, other: dict[str, Any]):
    used(tmp_path, FLEET)

    folder = used(tmp_path, replace(FLEET, **other))

    assert folder.parent == tmp_path
    assert (tmp_path / DATABASE).read_text() == f"{DATABASE} of small"
    assert start(tmp_path, FLEET) == tmp_path
    assert start(tmp_path, replace(FLEET, **other)) == folder
    assert (folder / DATABASE).exists()


def test_a_faster_one_is_the_same_fleet(tmp_path: Path):
    used(tmp_path, FLEET)

    assert start(tmp_path, replace(FLEET, speed=2.0, faults=("a",))) == tmp_path


def test_a_reset_forgets_its_own_fleet_only(tmp_path: Path):
    used(tmp_path, FLEET)
    mixed = used(tmp_path, MIXED)
    (tmp_path / "notes").write_text("mine")

    start(tmp_path, FLEET, reset=True)

    assert names(tmp_path) == {FILE, "notes", mixed.name}
    assert (mixed / DATABASE).exists()


def by(found: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Quarterdeck had these migrations."""
    monkeypatch.setattr(kept, "migrations", lambda: found)


def test_newer_migrations_go_on_with_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    by(FIRST, monkeypatch)
    used(tmp_path, FLEET)
    by(FIRST | {"fleet.0002_new": "b"}, monkeypatch)

    start(tmp_path, FLEET)

    assert (tmp_path / DATABASE).exists()
    assert "fleet.0002_new" in json.loads((tmp_path / FILE).read_text())["migrations"]


@pytest.mark.parametrize("now", [{}, {"fleet.0001_initial": "another"}, {"people.0001_initial": "a"}])
def test_tables_that_nothing_leads_on_from_are_kept_aside(
    tmp_path: Path, now: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    by(FIRST, monkeypatch)
    used(tmp_path, FLEET)
    by(now, monkeypatch)

    assert start(tmp_path, FLEET) == tmp_path

    (aside,) = (tmp_path / ASIDE).iterdir()
    assert not (tmp_path / DATABASE).exists()
    assert {DATABASE, FILE} <= names(aside)
    said = capsys.readouterr().out
    assert "fleet.0001_initial is not here, or not as it was" in said
    assert f"It is kept in {aside}" in said
    assert list(kept.all_in(tmp_path)) == [tmp_path]


def test_the_migrations_are_those_of_every_app():
    assert {"people.0001_initial", "fleet.0001_initial", "rollouts.0001_initial"} <= kept.migrations().keys()


def test_a_folder_from_before_migrations_were_noted_goes_on(tmp_path: Path):
    used(tmp_path, FLEET)
    (tmp_path / FILE).write_text(json.dumps({"tables": "d1g3st", "name": "small", "nodes": 4, "seed": 1}))

    assert start(tmp_path, FLEET) == tmp_path

    assert (tmp_path / DATABASE).exists()


def test_files_of_somebody_else_stay(tmp_path: Path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "kubeconfig").write_text("of production")

    folder = start(tmp_path, FLEET)
    start(tmp_path, FLEET, reset=True)

    assert folder == tmp_path / "small-4"
    assert names(tmp_path) == {"logs", "kubeconfig", "small-4"}


def test_where_even_the_own_folder_is_somebody_elses_nothing_starts(tmp_path: Path):
    for folder in (tmp_path, tmp_path / "small-4"):
        folder.mkdir(exist_ok=True)
        (folder / DATABASE).write_text("of somebody")

    with pytest.raises(NotOursError, match="another --data-dir"):
        folder_for(tmp_path, FLEET)


@given(there=st.sets(NAMES), below=st.sets(NAMES), fleets=st.lists(st.sampled_from([FLEET, MIXED]), max_size=4))
def test_no_start_removes_what_no_start_of_its_fleet_made(
    there: set[str], below: set[str], fleets: Iterable[Fleet], tmp_path_factory: pytest.TempPathFactory
):
    base = tmp_path_factory.mktemp("base")
    for folder, found in ((base, there), (base / "small-4", below)):
        folder.mkdir(exist_ok=True)
        for name in found:
            (folder / name).write_text("of a person")

    for fleet in fleets:
        try:
            start(base, fleet)
        except NotOursError:
            continue

    assert all((base / name).read_text() == "of a person" for name in there)
    assert all((base / "small-4" / name).read_text() == "of a person" for name in below)
