"""The cluster's etcd: every write gets the next version, every watch hears of it.

Objects are plain dicts that nobody changes once they are stored; lists, watches and the log share them.
"""

import threading
from collections.abc import Iterable
from typing import Any

from simulator import definitions
from simulator.clock import Clock
from simulator.cursor import Cursor
from simulator.events import Change, ChangeLog, EventType, Record, Watch
from simulator.kinds import BUILT_IN, DEFINITION, Kind
from simulator.matching import matcher, within
from simulator.refusals import not_found, path_not_found
from simulator.shelf import ANY_VERSION, Matches, Page, Shelf, Token

Obj = dict[str, Any]
FIRST_VERSION = 1000


class Etcd:
    """What is stored. It asks nobody whether it may be: that is the API server's to say."""

    def __init__(self, clock: Clock | None = None, kinds: tuple[Kind, ...] = BUILT_IN) -> None:
        self.clock = clock or Clock()
        self.lock = threading.RLock()
        self.version = FIRST_VERSION
        self.kinds: dict[tuple[str, str, str], Kind] = {}
        self.shelves: dict[tuple[str, str], Shelf] = {}
        for kind in kinds:
            self._serve(kind)

    def _serve(self, kind: Kind) -> None:
        self.kinds[kind.group, kind.version, kind.plural] = kind
        self.shelves.setdefault(kind.shelf, Shelf(kind, ChangeLog(self.version)))

    def find_kind(self, group: str, version: str, plural: str) -> Kind:
        kind = self.kinds.get((group, version, plural))
        if kind is None:
            raise path_not_found()
        return kind

    def shelf(self, kind: Kind) -> Shelf:
        shelf = self.shelves.get(kind.shelf)
        if shelf is None:
            raise path_not_found()
        return shelf

    def restore(self, objects: Iterable[tuple[tuple[str, str, str], Obj]], *, version: int) -> None:
        """Hold exactly these, by the kinds they were kept as; definitions come first. What was before is forgotten."""
        with self.lock:
            for shelf in self.shelves.values():
                shelf.empty()
            for names, obj in objects:
                kind = self.find_kind(*names)
                self.shelf(kind).place(Record(obj, int(obj["metadata"]["resourceVersion"])))
                if kind is DEFINITION:
                    for served in definitions.kinds_of(obj):
                        self._serve(served)
            self.version = version
            self.expire()

    # Reading

    def record(self, kind: Kind, name: str, namespace: str = "") -> Record:
        key = f"{namespace}/{name}" if kind.namespaced else name
        record = self.shelf(kind).records.get(key)
        if record is None:
            raise not_found(kind, name)
        return record

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return self.record(kind, name, namespace).obj

    def page(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        matches: Matches | None = None,
        limit: int = 0,
        token: Token | None = None,
    ) -> Page:
        with self.lock:
            start = token or Token(ANY_VERSION, "")
            return self.shelf(kind).page(self.version, namespace=namespace, matches=matches, limit=limit, token=start)

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
    ) -> tuple[list[Obj], str, str]:
        matches = matcher(kind, label_selector, field_selector)
        token = Token.decode(continue_) if continue_ else None
        page = self.page(kind, namespace, matches=matches, limit=limit, token=token)
        return [record.obj for record in page.records], str(page.version), page.continue_

    # Writing

    def mark(self, kind: Kind, obj: Obj) -> Obj:
        """Store what the server itself decided, past the rules for clients."""
        self.version += 1
        record = Record(obj, self.version).at_version(self.version)
        self.shelf(kind).put(record)
        if kind is DEFINITION:
            for served in definitions.kinds_of(record.obj):
                self._serve(served)
        return record.obj

    def drop(self, kind: Kind, last: Obj) -> Obj:
        """Take an object off its shelf; a definition takes the kinds that it serves with it."""
        self.version += 1
        record = Record(last, self.version).at_version(self.version)
        self.shelf(kind).drop(record)
        if kind.shelf == DEFINITION.shelf:
            for served in definitions.kinds_of(record.obj):
                self.kinds.pop((served.group, served.version, served.plural), None)
                self.shelves.pop(served.shelf, None)
        return record.obj

    # Watching

    def cursor(self, kind: Kind, namespace: str = "", *, matches: Matches | None = None, since: str) -> Cursor:
        """:raises Refused: 410 when `since` is forgotten."""
        with self.lock:
            shelf = self.shelf(kind)
            if since not in ("", "0"):
                shelf.log.after(int(since))
                return Cursor(self, shelf, within(namespace, matches), int(since), [])
            page = self.page(kind, namespace, matches=matches)
            initial = [Change(EventType.ADDED, record, None) for record in page.records]
            return Cursor(self, shelf, within(namespace, matches), page.version, initial)

    def watch(
        self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "", *, since: str
    ) -> Watch:
        cursor = self.cursor(kind, namespace, matches=matcher(kind, label_selector, field_selector), since=since)
        stirred = threading.Event()
        stop = cursor.on_change(stirred.set)

        def read() -> list[Change]:
            stirred.clear()
            return cursor.read()

        def close() -> None:
            stop()
            stirred.set()

        return Watch(read, stirred.wait, close)

    def expire(self) -> None:
        """Forget the past: old watches, and lists half read, get 410."""
        with self.lock:
            self.version += 1
            for shelf in self.shelves.values():
                shelf.log.forget(self.version)
                for listener in shelf.listeners:
                    listener()
