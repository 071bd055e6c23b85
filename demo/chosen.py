"""`python -m demo.chosen`: which demo's database `bin/manage` works on. It prints the file of its environment."""

import fcntl
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from demo.kept import ENVIRONMENT, LOCK, all_in
from demo.settings import ROOT

BASE = ROOT / ".data" / "demo"
# Who says one of these means an installation of their own, or one demo's folder.
NAMING = ("QUARTERDECK_DATA_DIR", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")


def chosen(named: Mapping[str, str], base: Path = BASE) -> tuple[Path | None, str]:
    """The environment to work in, and what a person should know of the choice; no file: that of the caller."""
    if any(named.get(name) for name in NAMING):
        return of_a_folder(named), ""
    folders = [folder for folder in all_in(base) if (folder / ENVIRONMENT).exists()]
    if not folders:
        return None, ""
    last = max(folders, key=started)
    running = [folder for folder in folders if runs(folder)]
    taken = max(running, key=started, default=last)
    return taken / ENVIRONMENT, told(taken, folders, running)


def of_a_folder(named: Mapping[str, str]) -> Path | None:
    """A folder that was a demo's `--data-dir` knows its own database."""
    file = Path(named.get("QUARTERDECK_DATA_DIR", "")).absolute() / ENVIRONMENT
    is_all = set(NAMING) & {name for name in NAMING if named.get(name)} == {"QUARTERDECK_DATA_DIR"}
    return file if is_all and file.is_file() else None


def command_for(folder: Path, base: Path = BASE) -> str:
    """What a person types to have `bin/manage` work on the demo in this folder."""
    file, _ = chosen({}, base)
    return "bin/manage" if file == folder / ENVIRONMENT else f"QUARTERDECK_DATA_DIR={quote(str(folder))} bin/manage"


def started(folder: Path) -> float:
    """When it last came up, in seconds since 1970."""
    return (folder / ENVIRONMENT).stat().st_mtime


def runs(folder: Path) -> bool:
    """Say whether a demo has the folder's lock."""
    try:
        with (folder / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def told(taken: Path, folders: Sequence[Path], running: Sequence[Path]) -> str:
    """Say which one it is where there are several, and how to have another."""
    others = [folder for folder in folders if folder != taken]
    if not others:
        return ""
    why = "the last started of those that run" if len(running) > 1 else "which runs" if running else "the last started"
    ways = "".join(f"\n  QUARTERDECK_DATA_DIR={folder} bin/manage …" for folder in others)
    return f"bin/manage works on the demo in {taken}, {why}. For another:{ways}"


def main() -> None:
    file, words = chosen(os.environ)
    if words:
        print(words, file=sys.stderr)
    if file:
        print(file)


if __name__ == "__main__":
    main()
