#!/usr/bin/env python3
"""Runs every check, two at a time, and reports each failure with its output."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rooms import rooms

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@dataclass(frozen=True)
class Outcome:
    """The result of one check: its exit status and output."""

    name: str
    is_ok: bool
    seconds: float
    said: str


def checks() -> dict[str, list[str]]:
    """Name every check and the command that is it; the slowest first, as they share two cores."""
    python, tools = sys.executable, Path(sys.executable).parent
    return {
        "types": [python, "-m", "mypy", *rooms()],
        "migrations": [python, "manage.py", "makemigrations", "--check", "--dry-run"],
        "old and new code": [python, "bin/checks/migrations.py"],
        "settings": [python, "manage.py", "check", "--fail-level", "WARNING"],
        "layers": [python, "-c", LINT_IMPORTS],
        "lint": [str(tools / "ruff"), "check", "."],
        "format": [str(tools / "ruff"), "format", "--check", "."],
        "templates": [str(tools / "djade"), "--check", "--target-version", "5.2", *tracked("*.html")],
        "markup": [python, "bin/checks/markup.py"],
        "page texts": [python, "bin/checks/page_texts.py"],
        "shell": ["sh", "-c", 'for file in bin/[a-z_]*; do [ -d "$file" ] || sh -n "$file" || exit 1; done'],
        "vendored files": [python, "bin/checks/vendored.py"],
        "requirements": [python, "bin/checks/requirements.py"],
        "compatibility": [python, "bin/checks/compatibility.py"],
        "leaks": [python, "bin/checks/leaks.py"],
        "tables": [python, "bin/checks/tables.py"],
        "names": [python, "bin/checks/names.py"],
    }


def tracked(pattern: str) -> list[str]:
    """The files git knows by this pattern, and the new ones it does not ignore."""
    listed = subprocess.run(  # noqa: S603
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern],  # noqa: S607
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


def run(name: str, command: list[str]) -> Outcome:
    """Run one check to its end; on the tests' settings, so that none needs a secret or a database."""
    began = time.monotonic()
    ended = subprocess.run(  # noqa: S603
        command,
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings.test", "DATABASE_URL": "sqlite://:memory:"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Outcome(name, ended.returncode == 0, time.monotonic() - began, ended.stdout.strip())


def report(outcomes: Iterator[Outcome]) -> list[str]:
    """Prints a line per check and the output of failed checks; returns their names."""
    failed = []
    for outcome in outcomes:
        sys.stdout.write(f"{'ok  ' if outcome.is_ok else 'FAIL'}  {outcome.name:<16} {outcome.seconds:5.1f} s\n")
        if not outcome.is_ok:
            failed.append(outcome.name)
            sys.stdout.write(f"{outcome.said}\n\n")
        sys.stdout.flush()
    return failed


def main() -> int:
    """Return 0 when every check passed."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        failed = report(pool.map(lambda check: run(*check), checks().items()))
    if failed:
        sys.stdout.write(f"bin/check: {len(failed)} failed: {', '.join(failed)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
