#!/usr/bin/env python3
"""Fetch every vendored file again, as `static/vendor/VENDOR.json` names it, and write the hashes it found back there.

Needs npm and a network; nobody else does. To take a newer version, change it in VENDOR.json, run this, read the diff.
"""

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"
SVG = "http://www.w3.org/2000/svg"
SOURCE_MAP = re.compile(rb"\n?/[*/]# sourceMappingURL=\S+?(?: ?\*/)?\s*$")


def main() -> int:
    """Write the files, then the table with their hashes."""
    table = json.loads((VENDOR / "VENDOR.json").read_text())
    for package in table:
        with tempfile.TemporaryDirectory() as folder:
            unpacked = unpack(package["source"], package["version"], Path(folder))
            for file in package["files"]:
                write(file, unpacked)
    (VENDOR / "VENDOR.json").write_text(json.dumps(table, indent=2) + "\n")
    return 0


def unpack(source: str, version: str, folder: Path) -> Path:
    """Return the folder of the npm package at exactly this version."""
    packed = subprocess.run(  # noqa: S603
        ["npm", "pack", "--silent", f"{source}@{version}"],  # noqa: S607
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def write(file: dict, unpacked: Path) -> None:
    """Place one file and record its hash; a file with no origin is ours to keep and only hashed."""
    target = VENDOR / file["path"]
    target.parent.mkdir(parents=True, exist_ok=True)
    if "icons" in file:
        target.write_text(sprite(file["icons"], unpacked / file["from"]))
    elif "from" in file:
        # The map is not shipped, and a hashed-names storage refuses a file that points at one that is not there.
        target.write_bytes(SOURCE_MAP.sub(b"\n", (unpacked / file["from"]).read_bytes()))
    file["sha256"] = hashlib.sha256(target.read_bytes()).hexdigest()
    sys.stdout.write(f"{file['sha256'][:12]}  {file['path']}\n")


def sprite(names: list[str], folder: Path) -> str:
    """One SVG with a symbol per icon: `<svg><use href="…/sprite.svg#clock"/></svg>` draws one."""
    symbols = [symbol(name, (folder / f"{name}.svg").read_text()) for name in names]
    return f'<svg xmlns="{SVG}">\n' + "\n".join(symbols) + "\n</svg>\n"


def symbol(name: str, text: str) -> str:
    """The icon's shapes, without the transparent square that Tabler draws first to keep its size."""
    root = ET.fromstring(text)  # noqa: S314
    shapes = [shape for shape in root if shape.get("d") != "M0 0h24v24H0z"]
    drawn = "".join(ET.tostring(shape, encoding="unicode").strip() for shape in shapes)
    drawn = drawn.replace(f' xmlns:ns0="{SVG}"', "").replace("ns0:", "")
    outline = 'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"'
    return f'<symbol id="{name}" viewBox="0 0 24 24" {outline}>{drawn}</symbol>'


if __name__ == "__main__":
    sys.exit(main())
