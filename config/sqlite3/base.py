"""Django's SQLite backend with owner-only files: they contain sessions and token digests."""

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.backends.sqlite3 import base

OWNER_ONLY_FILE, OWNER_ONLY_FOLDER = 0o600, 0o700
_private_files: set[str] = set()


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        name = str(conn_params["database"])
        if name not in _private_files and not _is_in_memory(name):
            keep_private(Path(name))
            _private_files.add(name)
        return super().get_new_connection(conn_params)


def keep_private(file: Path) -> None:
    """Creates the file before the first connection: SQLite gives `-wal` and `-shm` its mode (os_unix.c,
    findCreateFileMode).

    An existing file is not opened: closing it would release this process's locks on it.
    """
    if file.parent == Path(settings.DATA_DIR):
        _restrict(file.parent, OWNER_ONLY_FOLDER)
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, OWNER_ONLY_FILE))
    except FileExistsError:
        for path in (file, *(file.with_name(f"{file.name}{suffix}") for suffix in ("-wal", "-shm"))):
            _restrict(path, OWNER_ONLY_FILE)
    except OSError:
        return  # missing or read-only folder: the system checks and SQLite report it better


def _restrict(path: Path, mode: int) -> None:
    """Removes permissions, only from files that we own."""
    if not path.exists() or path.stat().st_uid != os.geteuid():
        return
    current = path.stat().st_mode & 0o777
    if current & ~mode:
        path.chmod(current & mode)


def _is_in_memory(name: str) -> bool:
    return ":memory:" in name or name.startswith("file:")
