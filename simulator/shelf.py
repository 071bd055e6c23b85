"""The objects of one kind: by key, in etcd's order, with their log and with consistent pages of the past."""

import base64
import binascii
import json
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

from simulator.events import Change, ChangeLog, EventType, Record, key_of
from simulator.kinds import Kind
from simulator.refusals import Refused, bad_request, expired

# The words of the API server's pager (k8s.io/apiserver, storage/etcd3/errors.go).
TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
ANY_VERSION = -1
AFTER_SLASH = chr(ord("/") + 1)

Matches = Callable[[Mapping[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Token:
    """Where a chunked list goes on, and which moment it is a picture of."""

    version: int
    start: str

    def encode(self) -> str:
        body = json.dumps({"v": "meta.k8s.io/v1", "rv": self.version, "start": self.start})
        return base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "Token":
        try:
            body = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return cls(int(body["rv"]), str(body["start"]))
        except (binascii.Error, ValueError, KeyError, TypeError) as error:
            raise bad_request(f"continue key is not valid: {error}") from error


@dataclass(frozen=True, slots=True)
class Page:
    records: list[Record]
    version: int
    continue_: str = ""
    remaining: int | None = None
    """None where the API server does not count: with a selector, or at the end."""


@dataclass(slots=True)
class Shelf:
    kind: Kind
    log: ChangeLog
    records: dict[str, Record] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def place(self, record: Record) -> None:
        """As it was, and without a word to anybody."""
        insort(self.keys, key_of(record.obj))
        self.records[key_of(record.obj)] = record

    def empty(self) -> None:
        self.records.clear()
        self.keys.clear()

    def put(self, record: Record) -> None:
        key = key_of(record.obj)
        was = self.records.get(key)
        if was is None:
            insort(self.keys, key)
        self.records[key] = record
        self._tell(Change(EventType.ADDED if was is None else EventType.MODIFIED, record, was))

    def drop(self, last: Record) -> None:
        key = key_of(last.obj)
        was = self.records.pop(key)
        del self.keys[bisect_left(self.keys, key)]
        self._tell(Change(EventType.DELETED, last, was))

    def _tell(self, change: Change) -> None:
        self.log.append(change)
        for listener in self.listeners:
            listener()

    def page(self, now: int, *, namespace: str, matches: Matches | None, limit: int, token: Token) -> Page:
        """Objects from `token` on, as they were at its version (`ANY_VERSION`: as they are).

        :raises Refused: 410 when that moment is forgotten, with a token that goes on without consistency.
        """
        version = now if token.version == ANY_VERSION else token.version
        before = self._undone(token, now)
        found: list[Record] = []
        prefix = f"{namespace}/" if namespace else ""
        walk = self._walk(token.start, prefix, before)
        for key, record in walk:
            if matches is None or matches(record.obj):
                found.append(record)
            if limit and len(found) == limit:
                return self._cut(found, version, key, walk, left=None if matches else self._left(key, prefix, before))
        return Page(found, version)

    def _undone(self, token: Token, now: int) -> dict[str, Record | None]:
        if token.version in {ANY_VERSION, now}:
            return {}
        try:
            return self.log.undone_since(token.version)
        except Refused as refusal:
            raise expired(TOO_OLD, continue_=Token(ANY_VERSION, token.start).encode()) from refusal

    def _walk(self, start: str, prefix: str, before: Mapping[str, Record | None]) -> Iterator[tuple[str, Record]]:
        first = max(start, prefix)
        gone = sorted(key for key, was in before.items() if was and key >= first and key not in self.records)
        present = (self.keys[index] for index in range(bisect_left(self.keys, first), len(self.keys)))
        for key in merge(present, gone) if gone else present:
            if not key.startswith(prefix):
                return
            record = before[key] if key in before else self.records[key]
            if record is not None:
                yield key, record

    def _left(self, last: str, prefix: str, before: Mapping[str, Record | None]) -> int:
        """How many follow, without going through them: a page of a long list must not cost what the list does."""
        end = prefix[:-1] + AFTER_SLASH if prefix else None
        upto = len(self.keys) if end is None else bisect_left(self.keys, end)
        ahead = [key for key in before if key > last and (end is None or key < end)]
        born = sum(before[key] is None and key in self.records for key in ahead)
        died = sum(before[key] is not None and key not in self.records for key in ahead)
        return upto - bisect_right(self.keys, last) - born + died

    def _cut(self, found: list[Record], version: int, last: str, rest: Iterator[Any], *, left: int | None) -> Page:
        """`left` None: with a selector nobody counts."""
        if not (left if left is not None else next(rest, None)):
            return Page(found, version)
        return Page(found, version, Token(version, last + "\0").encode(), left)
