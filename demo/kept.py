"""What a folder holds: of which fleet it is, and by which migrations its tables were made."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from demo.parts import STATE, Fleet
from demo.settings import ROOT

FILE = "fleet.json"
SHAPING = ("name", "nodes", "seed")  # what of a fleet another cluster would have
DATABASE = "quarterdeck.sqlite3"
ENVIRONMENT = "environment"  # for `bin/manage`; the last thing that a start writes
LOCK = "lock"  # of a demo that runs
ASIDE = "aside"  # what another version made, and this one cannot go on with
# Named one by one: nothing else in a folder is ours to remove.
OF_ONE_RUN = ("logs", "valkey", "kubeconfig", "requests.jsonl", "beat-schedule")
OF_ONE_FLEET = (
    STATE,
    FILE,
    ENVIRONMENT,
    "secret.key",
    "prometheus",
    *(f"{DATABASE}{end}" for end in ("", "-wal", "-shm")),
)
Mark = dict[str, Any]


class NotOursError(Exception):
    """What is there was not put there by a demo, or not by one like this: it stays as it is."""


def folder_for(base: Path, fleet: Fleet) -> Path:
    """Where this fleet lives. The first one of a folder has it to itself, every other one a folder of its own in it.

    :raises NotOursError: where somebody else's files have the names of ours
    """
    if is_free_for(base, fleet):
        return base
    own = base / slug(fleet)
    if not is_free_for(own, fleet):
        raise NotOursError(f"{own} has files that are not this demo's. Give it another --data-dir.")
    return own


def is_free_for(folder: Path, fleet: Fleet) -> bool:
    """Say whether the folder is this fleet's, or has nothing that a start would write over."""
    if mark := mark_in(folder):
        return shape_of(mark) == shape(fleet)
    return not any((folder / name).exists() for name in (*OF_ONE_RUN, *OF_ONE_FLEET))


def slug(fleet: Fleet) -> str:
    """Return the name of a fleet's own folder: mixed-64, or mixed-64-seed-2."""
    return f"{fleet.name}-{fleet.nodes}" + ("" if fleet.seed == 1 else f"-seed-{fleet.seed}")


def mark_in(folder: Path) -> Mark:
    """Return what was written down of the folder; empty where there is nothing that can be read."""
    try:
        found = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and set(SHAPING) <= found.keys() else {}


def shape(fleet: Fleet) -> list[Any]:
    return [getattr(fleet, name) for name in SHAPING]


def shape_of(mark: Mark) -> list[Any]:
    return [mark[name] for name in SHAPING]


def misfit(folder: Path) -> str:
    """Return the first migration that leaves no way on: one that is gone, or another one by now. Blank: newer ones do.

    Newer migrations bring a database up to date.
    """
    made_by, there = mark_in(folder).get("migrations", {}), migrations()
    return next((name for name, digest in sorted(made_by.items()) if there.get(name) != digest), "")


def put_aside(folder: Path, *, now: datetime) -> Path:
    """Move what is of the fleet into a folder of its own inside, where no start looks, and return that."""
    aside = folder / ASIDE / f"{now:%Y-%m-%dT%H%M%S}"
    aside.mkdir(parents=True, mode=0o700)
    for name in OF_ONE_FLEET:
        if (folder / name).exists():
            (folder / name).rename(aside / name)
    return aside


def migrations() -> dict[str, str]:
    """Return a digest of each."""
    found = sorted(ROOT.glob("*/migrations/0*.py"))
    return {f"{file.parts[-3]}.{file.stem}": sha256(file.read_bytes()).hexdigest() for file in found}


def note(folder: Path, fleet: Fleet) -> None:
    """Write down what the folder holds from now on: all of it or nothing, whenever we are killed."""
    partial = folder / f"{FILE}.partial"
    partial.write_text(json.dumps(dict(zip(SHAPING, shape(fleet), strict=True)) | {"migrations": migrations()}))
    partial.replace(folder / FILE)


def has_been_up(folder: Path) -> bool:
    """Say whether a start came to its end there: the cluster is added, and its pools are made."""
    return (folder / ENVIRONMENT).exists()


def all_in(base: Path) -> Iterator[Path]:
    """Every folder with a fleet of its own: the base, and those in it."""
    folders: Iterable[Path] = (base, *sorted(base.glob("*/")))
    yield from (folder for folder in folders if mark_in(folder))
