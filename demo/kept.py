"""Whether what a folder holds is of the fleet that is asked for, and of tables as they are now."""

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from demo.parts import Fleet
from demo.settings import ROOT

FILE = "fleet.json"
SHAPING = ("name", "nodes", "seed")  # what of a fleet another cluster would have


def mark_of(fleet: Fleet) -> dict[str, str | int]:
    """What must be the same to go on. Before a release, tables change without a way from what they were."""
    migrations = sorted(ROOT.glob("*/migrations/0*.py"))
    tables = sha256(b"".join(file.read_bytes() for file in migrations)).hexdigest()
    asked = asdict(fleet)
    return {"tables": tables} | {name: asked[name] for name in SHAPING}


def goes_on(folder: Path, fleet: Fleet) -> bool:
    """Say whether the folder's cluster and database can be gone on with."""
    try:
        return bool(json.loads((folder / FILE).read_text()) == mark_of(fleet))
    except (OSError, ValueError):
        return False


def note(folder: Path, fleet: Fleet) -> None:
    """Write down what the folder holds from now on."""
    (folder / FILE).write_text(json.dumps(mark_of(fleet)))
