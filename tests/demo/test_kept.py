"""A second demo on the same folder shows the same fleet and the same database; --reset forgets both."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from demo import kept
from demo.parts import STATE, Fleet
from demo.stack import PASSWORD
from demo.supervisor import prepare
from demo.visitor import Visitor, wait_until
from tests.demo.test_supervisor import Terminal, demo  # noqa: F401

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


def seen(terminal: Terminal) -> tuple[str, dict[str, int]]:
    """The cluster's UID, and the key of each node's row."""
    with Visitor(terminal.url(), "viewer") as viewer:
        viewer.sign_in(PASSWORD)
        nodes = wait_until(lambda: viewer.all("/api/v1/nodes"), what="nodes", timeout_s=60)
        return viewer.all("/api/v1/clusters")[0]["uid"], {node["uid"]: node["id"] for node in nodes}


def ended(terminal: Terminal) -> None:
    terminal.wait_for("Ctrl-C ends it all")
    terminal.process.terminate()
    assert terminal.process.wait(timeout=20) == 0


@pytest.mark.flow
def test_a_second_start_shows_the_same_cluster_and_rows(demo: Callable[..., Terminal]):  # noqa: F811
    first = demo()
    before = seen(first)
    ended(first)

    second = demo()
    after = seen(second)
    ended(second)
    third = demo("--reset")

    assert after == before
    assert seen(third)[0] != before[0]
