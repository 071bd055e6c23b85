"""Tables are made once by each version of the code, and each new demo has all of them."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from demo import tables
from demo.stack import Stack
from tests.patience import PATIENCE_S
from tests.rooms import PRODUCT


class Maker:
    """Makes a database of one row, which it leaves in the `-wal`."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.times = 0
        self.may = Event()
        self.may.set()

    def __call__(self) -> None:
        assert self.may.wait(PATIENCE_S)
        self.times += 1
        self.open = sqlite3.connect(self.database, check_same_thread=False)
        self.open.execute("PRAGMA journal_mode=WAL")
        self.open.execute("CREATE TABLE people (name)")
        self.open.execute("INSERT INTO people VALUES ('ada')")
        self.open.commit()


@pytest.fixture
def a_demo(tmp_path: Path) -> Callable[[str], Maker]:
    def folder(name: str) -> Maker:
        (tmp_path / name).mkdir()
        return Maker(tmp_path / name / "quarterdeck.sqlite3")

    return folder


def put(demo: Maker) -> list[tuple[str]]:
    tables.put(demo.database, demo, kept_in=demo.database.parents[1] / "tables")
    with closing(sqlite3.connect(demo.database)) as rows:
        return rows.execute("SELECT name FROM people").fetchall()


def test_the_first_makes_them_and_the_others_have_a_copy(a_demo):
    first, second = a_demo("first"), a_demo("second")

    assert put(first) == put(second) == [("ada",)]
    assert (first.times, second.times) == (1, 0)
    assert second.database.stat().st_mode == first.database.stat().st_mode
    with closing(sqlite3.connect(second.database)) as its_own:
        its_own.execute("DELETE FROM people")
        its_own.commit()
    assert put(a_demo("third")) == [("ada",)]


def test_who_comes_while_they_are_made_waits_and_has_a_copy(a_demo):
    first, second = a_demo("first"), a_demo("second")
    first.may.clear()
    with ThreadPoolExecutor() as threads:
        made = threads.submit(put, first)
        copied = threads.submit(put, second)
        first.may.set()

    assert made.result() == copied.result() == [("ada",)]
    assert first.times + second.times == 1


def test_other_code_makes_its_own_and_what_was_kept_of_the_other_goes(a_demo, tmp_path, monkeypatch):
    put(a_demo("first"))
    monkeypatch.setattr(tables, "version", lambda: "another")
    second = a_demo("second")

    put(second)

    assert second.times == 1
    assert [file.name for file in (tmp_path / "tables").glob("*.sqlite3")] == ["another.sqlite3"]


def test_who_cannot_keep_them_has_them_all_the_same(a_demo, tmp_path):
    (tmp_path / "tables").touch()  # no folder, and none can be made
    first, second = a_demo("first"), a_demo("second")

    assert put(first) == put(second) == [("ada",)]
    assert (first.times, second.times) == (1, 1)


@pytest.mark.parametrize("changed", ["requirements.txt", "fleet/migrations/0001_initial.py", "people/rights.py"])
def test_any_code_or_package_that_they_may_come_from_makes_another_version(changed: str, tmp_path: Path):
    for name in ("requirements.txt", "fleet/migrations/0001_initial.py", "people/rights.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("as it was")
    before = tables.version(tmp_path)

    (tmp_path / changed).write_text("as it is")

    assert tables.version(tmp_path) != before


def test_every_room_of_the_product_is_code_that_they_may_come_from():
    assert set(tables.CODE) == {*PRODUCT, "demo"}


def test_what_is_there_already_is_migrated_and_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "quarterdeck.sqlite3").write_text("of the last time")
    ran: list[list[str]] = []
    monkeypatch.setattr(Stack, "manage", lambda _self, *commands: ran.extend(commands))
    monkeypatch.setattr(tables, "put", lambda *_: pytest.fail("it was made anew"))

    Stack(tmp_path)._make_database()

    assert [command[0] for command in ran] == ["migrate", "create_demo_people"]
    assert (tmp_path / "quarterdeck.sqlite3").read_text() == "of the last time"
