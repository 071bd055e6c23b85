"""Tables and people of a new demo: the first start with this code makes them, and those after it copy them."""

import fcntl
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path

from demo.settings import ROOT

KEPT = ROOT / ".data" / "tables"
PINNED = "requirements.txt"
# Whatever a table, or a row that is there from the beginning, may come from.
CODE = (
    "capacity", "config", "demo", "edges", "fleet", "gpu", "health", "kube", "maintenance", "notifications",
    "operations", "people", "rollouts", "wording",
)  # fmt: skip


def put(database: Path, make: Callable[[], None], *, kept_in: Path = KEPT) -> None:
    """Have a new database there. Who comes while the first one is made waits for that."""
    try:
        kept_in.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (kept_in / "lock").open("w")
    except OSError:  # a checkout in which we may not write
        make()
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = kept_in / f"{version()}.sqlite3"
        if kept.exists():
            shutil.copy(kept, partial := database.with_suffix(".partial"))
            partial.rename(database)
            return
        make()
        with suppress(OSError, sqlite3.Error):  # it is made; that the next start makes its own costs seconds
            _keep(database, kept)


def version(root: Path = ROOT) -> str:
    """Return a digest of all that they are made by."""
    digest = sha256((root / PINNED).read_bytes())
    for file in sorted(file for package in CODE for file in (root / package).rglob("*.py")):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _keep(database: Path, kept: Path) -> None:
    """All of it, with what is in its `-wal`; what other code made goes."""
    partial = kept.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as made, closing(sqlite3.connect(partial)) as copied:
        made.backup(copied)
    partial.chmod(database.stat().st_mode)
    for old in kept.parent.glob("*.sqlite3"):
        old.unlink()
    partial.rename(kept)
