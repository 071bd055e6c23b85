#!/usr/bin/env python3
"""Fail when the tests would run on another version of a package than the product does."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([\w.\[\],-]+)==([^\s;\\]+)", re.MULTILINE)


def main() -> int:
    """Print every pin of the product that the development set lacks or has otherwise."""
    product, development = pins("requirements.txt"), pins("requirements-dev.txt")
    apart = {name: development.get(name, "no version") for name in product if product[name] != development.get(name)}
    sys.stdout.writelines(
        f"{name}: {product[name]} in requirements.txt, {other} in requirements-dev.txt\n"
        for name, other in apart.items()
    )
    return 1 if apart or not product else 0


def pins(file: str) -> dict[str, str]:
    """Return the version of every package the file pins; extras do not change the package."""
    found = PIN.findall((ROOT / file).read_text())
    return {re.sub(r"\[.*\]", "", name).lower(): version for name, version in found}


if __name__ == "__main__":
    sys.exit(main())
