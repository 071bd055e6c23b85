"""What is said and counted of a process that dies, and of one that is told to end."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.migrated import put_migrated
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
# A command takes two seconds to start, and ten times as long where much else runs: here it is waited for.
PATIENT = f"""
import sys
sys.path.insert(0, "deploy")
import supervise
supervise.NOTE_S = {PATIENCE_S}
sys.exit(supervise.main())
"""
SEGFAULT = "import faulthandler, os, signal; faulthandler.enable(); os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "db.sqlite3"


@pytest.fixture
def surroundings(database: Path) -> dict[str, str]:
    """Of a Quarterdeck with a database of its own."""
    mine = {"DATABASE_URL": f"sqlite:///{database}", "DJANGO_SETTINGS_MODULE": "config.settings.dev"}
    return {**os.environ, **mine}


@pytest.fixture
def _has_tables(database: Path) -> None:
    put_migrated(database)


def supervised(code: str, surroundings: dict[str, str], *, is_patient: bool = False) -> "subprocess.Popen[str]":
    script = ("-c", PATIENT) if is_patient else ("deploy/supervise.py",)
    words = [sys.executable, *script, "observe", sys.executable, "-u", "-c", code]
    return subprocess.Popen(
        words, cwd=ROOT, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def counted(database: Path) -> list[tuple[str, str, int]]:
    with sqlite3.connect(database) as asked:
        return asked.execute("SELECT process, cause, times FROM quarterdeck_processend ORDER BY cause").fetchall()


@pytest.mark.usefixtures("_has_tables")
def test_who_dies_is_named_with_the_signal_and_counted(surroundings, database):
    for code, status in ((SEGFAULT, 139), ("raise SystemExit(7)", 7), ("raise SystemExit(7)", 7)):
        ended = supervised(code, surroundings, is_patient=True)
        _, said = ended.communicate()
        assert ended.returncode == status

        line = json.loads(said.splitlines()[-1])
        assert line["event"].startswith(f"observe ended unexpectedly: {line['cause']}.")
        assert ("Fatal Python error" in line["event"]) == (line["cause"] == "SIGSEGV")
        assert ("Fatal Python error: Segmentation fault" in said) == (line["cause"] == "SIGSEGV")

    assert counted(database) == [("observe", "SIGSEGV", 1), ("observe", "exit 7", 2)]


@pytest.mark.usefixtures("_has_tables")
def test_who_is_told_to_end_ends_and_is_not_counted(surroundings, database):
    asleep = supervised("import time; print('up'); time.sleep(3600)", surroundings)
    assert asleep.stdout.readline() == "up\n"

    asleep.send_signal(signal.SIGTERM)
    _, said = asleep.communicate()

    assert asleep.returncode == 128 + signal.SIGTERM
    assert said == ""
    assert counted(database) == []


@pytest.mark.nightly
def test_a_database_that_is_away_costs_only_the_count(surroundings):
    away = {**surroundings, "DATABASE_URL": "sqlite:////nowhere/at/all.sqlite3"}
    ended = supervised("raise SystemExit(7)", away)
    _, said = ended.communicate()

    assert ended.returncode == 7
    assert "observe ended unexpectedly: exit 7" in said
    assert "It could not be counted" in said.splitlines()[-1]
