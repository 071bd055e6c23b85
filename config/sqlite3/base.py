"""Django's SQLite, in a file that nobody else on the machine can read: sessions and digests of tokens are in it."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.sqlite3 import base

OWNER_ONLY_FILE, OWNER_ONLY_FOLDER = 0o600, 0o700
_seen: set[str] = set()


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        name = str(conn_params["database"])
        if name not in _seen and not _is_no_file(name):
            keep_private(Path(name))
            _seen.add(name)
        return super().get_new_connection(conn_params)


def keep_private(file: Path) -> None:
    """Before the first connection: SQLite gives `-wal` and `-shm` the file's rights (os_unix.c, findCreateFileMode).

    A file that is there is never opened here: to close it would let go of the locks this process has on it.
    """
    if file.parent == Path(settings.DATA_DIR):
        _restrict(file.parent, OWNER_ONLY_FOLDER)
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY_FILE))
    except FileExistsError:
        for each in (file, *(file.with_name(f"{file.name}{end}") for end in ("-wal", "-shm"))):
            _restrict(each, OWNER_ONLY_FILE)
    except OSError:
        return  # no folder, or none to write in: the check of settings and SQLite itself say so, in better words


def _restrict(path: Path, mode: int) -> None:
    """Only what is ours, and only to fewer rights."""
    if not path.exists() or path.stat().st_uid != os.geteuid():
        return
    now = path.stat().st_mode & 0o777
    if now & ~mode:
        path.chmod(now & mode)


def _is_no_file(name: str) -> bool:
    return ":memory:" in name or name.startswith("file:")
