"""What happened to one kind, as long as it is remembered: every watch reads this log from its own place."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from simulator.refusals import expired

REMEMBERED = 8192
ENCODER = msgspec.json.Encoder()


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class Record:
    """An object as stored, beside its bytes. Never changed: a write makes a new one."""

    __slots__ = ("_json", "obj", "version")

    def __init__(self, obj: dict[str, Any], version: int) -> None:
        self.obj = obj
        self.version = version
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        held = self._json
        if held is None:
            held = self._json = ENCODER.encode(self.obj)
        return held

    def release(self) -> None:
        """Give up the bytes of a state that is past: they can be made again for whoever reads so late."""
        self._json = None

    def at_version(self, version: int) -> "Record":
        """The same content under another resourceVersion, as the last state of a deleted object is sent."""
        metadata = {**self.obj["metadata"], "resourceVersion": str(version)}
        return Record({**self.obj, "metadata": metadata}, version)


@dataclass(frozen=True, slots=True)
class Change:
    type: EventType
    record: Record
    """The new state; of a deletion the last one."""
    was: Record | None

    @property
    def version(self) -> int:
        return self.record.version

    def seen_through(self, matches: Callable[[dict[str, Any]], bool]) -> "Change | None":
        """The change as a watch with a selector tells it: what stops matching is DELETED, what begins to is ADDED."""
        did = self.was is not None and matches(self.was.obj)
        does = self.type is not EventType.DELETED and matches(self.record.obj)
        if does:
            return self if did or self.was is None else Change(EventType.ADDED, self.record, None)
        if not did or self.was is None:
            return None
        return Change(EventType.DELETED, self.was.at_version(self.version), self.was)


class ChangeLog:
    """Not thread-safe by itself; the store's lock guards it."""

    def __init__(self, floor: int, remembered: int = REMEMBERED) -> None:
        self.floor = floor
        """The newest version that is forgotten: nothing before it can be replayed."""
        self.remembered = remembered
        self.changes: list[Change] = []

    def append(self, change: Change) -> None:
        self.changes.append(change)
        if change.was is not None:
            change.was.release()
        if len(self.changes) >= 2 * self.remembered:
            self.forget(self.changes[-self.remembered - 1].version)

    def forget(self, version: int) -> None:
        del self.changes[: bisect_right(self.changes, version, key=lambda change: change.version)]
        self.floor = max(self.floor, version)

    def after(self, version: int) -> list[Change]:
        """:raises Refused: 410 when some of it is forgotten."""
        if version < self.floor:
            raise expired(f"too old resource version: {version} ({self.floor})")
        return self.changes[bisect_right(self.changes, version, key=lambda change: change.version) :]

    def undone_since(self, version: int) -> dict[str, Record | None]:
        """What each object that changed after `version` was at that version."""
        before: dict[str, Record | None] = {}
        for change in self.after(version):
            before.setdefault(key_of(change.record.obj), change.was)
        return before


def key_of(obj: dict[str, Any]) -> str:
    """Sorted as etcd sorts them: namespace, a slash, name."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else metadata["name"]


class Watch:
    """A blocking iterator of (type, object); `take` for those who would rather poll."""

    def __init__(
        self, read: Callable[[], list[Change]], wait: Callable[[float | None], bool], stop: Callable[[], None]
    ):
        self._read = read
        self._wait = wait
        self._stop = stop
        self._ready: list[tuple[str, dict[str, Any]]] = []
        self.is_closed = False

    def take(self, timeout_s: float | None = 0) -> list[tuple[str, dict[str, Any]]]:
        """All that is ready, waiting up to `timeout_s` (None: without end) for the first.

        :raises Refused: 410 when this watch fell behind what is remembered.
        """
        changes = self._read()
        while not changes and not self.is_closed and self._wait(timeout_s):
            changes = self._read()
            if timeout_s is not None:
                break
        return [(str(change.type), change.record.obj) for change in changes]

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        while not self.is_closed:
            yield from self.take(None)

    def close(self) -> None:
        self.is_closed = True
        self._stop()
