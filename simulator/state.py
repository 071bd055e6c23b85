"""A cluster kept in a file, so that it is the same one after a restart.

Nobody can go on with a watch from before, as after a restored etcd: versions move on by more than were ever given out
since the file was written, and the log begins there (etcdutl snapshot restore: --bump-revision and --mark-compacted).
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from simulator.events import ENCODER
from simulator.kinds import DEFINITION, NAMESPACE, Kind
from simulator.refusals import Refused
from simulator.store import Store

FORMAT = 1
BUMP = 1_000_000_000
SAVE_EVERY_S = 30.0
SHARE = 20


class UnreadableState(ValueError):
    """The file is no state of ours, or of another time."""


def save(store: Store, file: Path) -> None:
    """All or nothing: a process that is killed while it writes leaves the file of before."""
    with store.lock:
        version = store.version
        kept = [(kind, list(store.shelf(kind).records.values())) for kind in _one_of_each(store)]
    partial = file.with_name(f"{file.name}.partial")
    with partial.open("wb") as written:
        written.write(ENCODER.encode({"format": FORMAT, "version": version}) + b"\n")
        for kind, records in kept:
            for record in records:
                written.write(ENCODER.encode([kind.group, kind.version, kind.plural]) + b"\t" + record.json + b"\n")
    partial.replace(file)


def load(store: Store, file: Path) -> None:
    """Put back everything as it was; what the store was born with is replaced.

    :raises UnreadableState: and the store is not to be used
    """
    try:
        header, *lines = file.read_bytes().split(b"\n")[:-1]
        head = msgspec.json.decode(header)
        found = [_read(line) for line in lines]
        if head["format"] != FORMAT:
            raise UnreadableState(f"{file} is of format {head['format']}, not {FORMAT}")
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise UnreadableState(f"{file} cannot be read: {error}") from error
    # Definitions first: they say what else is served. Then namespaces, which others are in.
    found.sort(key=lambda each: (each[0][2] != DEFINITION.plural, each[0][2] != NAMESPACE.plural))
    try:
        store.restore(found, version=int(head["version"]) + BUMP)
    except Refused as refusal:
        raise UnreadableState(f"{file} has a kind that this cluster does not serve: {refusal}") from refusal


def _read(line: bytes) -> tuple[tuple[str, str, str], dict[str, Any]]:
    names, _, obj = line.partition(b"\t")
    group, version, plural = msgspec.json.decode(names)
    return (group, version, plural), msgspec.json.decode(obj)


def _one_of_each(store: Store) -> Iterator[Kind]:
    """Versions of a kind share their objects: one of them is enough."""
    yield from {kind.shelf: kind for kind in store.kinds.values()}.values()


class Keeper:
    """Writes the file at once, now and then, and a last time at the end: whoever is killed early is still the same."""

    def __init__(self, store: Store, file: Path, *, every_s: float = SAVE_EVERY_S) -> None:
        self._store = store
        self._file = file
        self._every_s = every_s
        self._written = -1
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()

    def _keep(self) -> None:
        while True:
            # Of a large cluster, seconds: it is not written all the time.
            pause_s = max(self._every_s, SHARE * self._save())
            if self._is_over.wait(pause_s):
                break
        self._save()

    def _save(self) -> float:
        """How long it took, in seconds."""
        began = time.monotonic()
        if self._store.version != self._written:
            self._written = self._store.version
            save(self._store, self._file)
        return time.monotonic() - began
