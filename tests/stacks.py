"""A stack on tables that are made once in a run: the first stack makes them, the others copy them.

The demo's own tests, and every bench, start on tables that they make.
"""

import fcntl
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from demo.kept import DATABASE
from demo.parts import Fleet
from demo.stack import Stack


class OnMadeTables(Stack):
    """`of_the_run`: a folder of all processes of the run."""

    def __init__(self, folder: Path, fleet: Fleet, *, of_the_run: Path, database_url: str = "") -> None:
        super().__init__(folder, fleet, database_url=database_url)
        self._made = of_the_run / DATABASE

    def make_database(self) -> None:
        """Whoever comes first makes it; who comes meanwhile waits for that."""
        if self._database_url:
            super().make_database()
            return
        with self._made.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._made.exists():
                super().make_database()
                self._keep()
                return
        shutil.copy(self._made, self.folder / DATABASE)

    def _keep(self) -> None:
        """All of it, with what is in its `-wal`."""
        partial = self._made.with_suffix(".partial")
        with (
            closing(sqlite3.connect(self.folder / DATABASE)) as own,
            closing(sqlite3.connect(partial)) as copied,
        ):
            own.backup(copied)
        partial.chmod((self.folder / DATABASE).stat().st_mode)
        partial.rename(self._made)


def folder_of_the_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Each worker process of a run has a folder of its own in it."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent
