import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from config.sqlite3.base import keep_private
from tests.variants import nightly_but_first

pytestmark = pytest.mark.sqlite

ROOT = Path(__file__).resolve().parents[2]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def writing(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
    connection.commit()
    return connection


def test_a_new_file_is_its_owners_and_so_is_what_sqlite_puts_beside_it(tmp_path):
    file = tmp_path / "quarterdeck.sqlite3"
    keep_private(file)

    connection = writing(file)

    beside = sorted(each.name for each in tmp_path.iterdir())
    assert beside == ["quarterdeck.sqlite3", "quarterdeck.sqlite3-shm", "quarterdeck.sqlite3-wal"]
    assert {mode(each) for each in tmp_path.iterdir()} == {0o600}
    connection.close()


def test_one_that_others_could_read_is_taken_from_them(tmp_path):
    file = tmp_path / "quarterdeck.sqlite3"
    connection = writing(file)
    for each in tmp_path.iterdir():
        each.chmod(0o644)

    keep_private(file)

    assert {mode(each) for each in tmp_path.iterdir()} == {0o600}
    connection.close()


def test_the_data_folder_is_its_owners_and_no_other_folder_is_touched(tmp_path, settings):
    ours, others = tmp_path / "data", tmp_path / "others"
    for folder in (ours, others):
        folder.mkdir(mode=0o755)
    settings.DATA_DIR = str(ours)

    keep_private(ours / "a.sqlite3")
    keep_private(others / "a.sqlite3")

    assert (mode(ours), mode(others)) == (0o700, 0o755)


def test_without_a_folder_nothing_is_made(tmp_path):
    keep_private(tmp_path / "nowhere" / "a.sqlite3")

    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("umask", nightly_but_first([0o000, 0o022]))
def test_the_first_command_already_makes_it_so(tmp_path, umask):
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    given = {"QUARTERDECK_DATA_DIR": str(data), "DJANGO_SETTINGS_MODULE": "config.settings.dev"}
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | given

    subprocess.run(
        [sys.executable, "manage.py", "migrate", "people", "-v", "0"], cwd=ROOT, env=env, check=True, umask=umask
    )

    assert mode(data) == 0o700
    assert {mode(each) for each in data.iterdir()} == {0o600}
