#!/usr/bin/env python3
"""Fail when a file under `static/vendor` is not exactly the one that VENDOR.json names."""

import hashlib
import json
import sys
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"
FACTS = ("name", "version", "licence", "source", "files")


def main() -> int:
    """Prints every difference; returns the exit status."""
    problems = differences(VENDOR)
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


def differences(folder: Path) -> list[str]:
    """Name each package that lacks a fact, and each file that is missing, changed or listed nowhere."""
    table = json.loads((folder / "VENDOR.json").read_text())
    nameless = [f"{package}: no {fact}" for package in table for fact in FACTS if not package.get(fact)]
    listed = {file["path"]: file["sha256"] for package in table for file in package["files"]}
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"VENDOR.json"}
    missing = [f"{path}: listed, but not there" for path in sorted(listed.keys() - there)]
    unlisted = [f"{path}: there, but not in VENDOR.json" for path in sorted(there - listed.keys())]
    changed = [f"{path}: changed" for path in sorted(listed.keys() & there) if sha256(folder / path) != listed[path]]
    return nameless + missing + unlisted + changed


def sha256(path: Path) -> str:
    """Return the file's hash in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
