"""GET with watch=true: a line per change, a bookmark now and then, until the client or the clock ends it."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable

from simulator.cursor import Cursor
from simulator.events import ENCODER, Change
from simulator.kinds import Kind
from simulator.matching import matcher
from simulator.refusals import Cause, Refused, invalid
from simulator.store import Store
from simulator.wire.answers import Answer
from simulator.wire.asks import Ask
from simulator.wire.closing import Closing
from simulator.wire.listing import LIST_OPTIONS
from simulator.wire.paths import Target
from simulator.wire.table import wants_table, watched_row

BOOKMARK_EVERY_S = 60.0
LAST_BOOKMARK_BEFORE_S = 2.0
TIMEOUT_FROM_S = 1800.0
"""--min-request-timeout of the API server: a watch without a wish of its own lasts this long, up to twice."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


def watch_objects(store: Store, ask: Ask, kind: Kind, target: Target, *, closing: Closing) -> Answer:
    query = ask.query
    initial = _initial_events(ask)
    matches = matcher(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    since = "0" if initial else query.get("resourceVersion", "")
    if since and not since.isdigit():
        raise invalid(LIST_OPTIONS, "", Cause("resourceVersion", f'Invalid value: "{since}"'))
    if initial is False and since in {"", "0"}:
        since = str(store.version)
    cursor = store.cursor(kind, target.namespace, matches=matches, since=since)
    timeout_s = float(ask.number("timeoutSeconds")) or TIMEOUT_FROM_S * (1 + random.random())
    stream = Stream(store, kind, cursor, ask, timeout_s=timeout_s, ends_initial=bool(initial), closing=closing)
    return Answer(pieces=stream.lines())


def _initial_events(ask: Ask) -> bool | None:
    """What sendInitialEvents says; the combinations that the API server refuses are refused."""
    asked, match = ask.query.get("sendInitialEvents"), ask.query.get("resourceVersionMatch", "")
    words = ""
    if asked is None and match:
        words = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
    elif asked is not None and match != "NotOlderThan":
        words = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif asked == "true" and not ask.flag("allowWatchBookmarks"):
        words = "Forbidden: sendInitialEvents requires allowWatchBookmarks"
    if words:
        raise invalid(LIST_OPTIONS, "", Cause("resourceVersionMatch", words, "FieldValueForbidden"))
    return None if asked is None else asked == "true"


class Stream:
    def __init__(
        self,
        store: Store,
        kind: Kind,
        cursor: Cursor,
        ask: Ask,
        *,
        timeout_s: float,
        ends_initial: bool,
        closing: Closing,
    ) -> None:
        self._store = store
        self._kind = kind
        self._cursor = cursor
        self._ends_initial = ends_initial
        self._closing = closing
        self._wants_bookmarks = ask.flag("allowWatchBookmarks")
        self._as_table = wants_table(ask.accept)
        self._include = ask.query.get("includeObject", "")
        now = time.monotonic()
        self._ends_at = now + timeout_s
        self._bookmark_at = min(now + BOOKMARK_EVERY_S, self._ends_at - LAST_BOOKMARK_BEFORE_S)
        self._has_columns = False

    async def lines(self) -> AsyncIterator[bytes]:
        stirred = asyncio.Event()
        stop = self._cursor.on_change(waker(stirred))
        self._closing.join(stirred)
        try:
            async for line in self._until_the_end(stirred):
                yield line
        finally:
            stop()
            self._closing.leave(stirred)

    async def _until_the_end(self, stirred: asyncio.Event) -> AsyncIterator[bytes]:
        yield b""  # the head of the answer goes out before anything happens
        while (now := time.monotonic()) < self._ends_at and not self._closing.is_near:
            stirred.clear()
            try:
                changes = self._cursor.read()
            except Refused as refusal:
                yield _line("ERROR", ENCODER.encode(refusal.body()))
                return
            for line in self._told(changes):
                yield line
            if self._wants_bookmarks and now >= self._bookmark_at:
                yield self._bookmark({})
                self._bookmark_at = self._next_bookmark(now)
            await _wait(
                stirred, min(self._ends_at, self._bookmark_at if self._wants_bookmarks else self._ends_at) - now
            )

    def _next_bookmark(self, now: float) -> float:
        last = self._ends_at - LAST_BOOKMARK_BEFORE_S
        return min(now + BOOKMARK_EVERY_S, last) if now < last else self._ends_at + 1

    def _told(self, changes: list[Change]) -> list[bytes]:
        # One write per batch: a busy kind costs a system call, not one for each change.
        lines = [self._tell(change) for change in changes]
        if self._ends_initial:
            self._ends_initial = False
            lines.append(self._bookmark({INITIAL_EVENTS_END: "true"}))
        return [b"".join(lines)] if lines else []

    def _tell(self, change: Change) -> bytes:
        if not self._as_table:
            return _line(change.type, change.record.json)
        row = watched_row(self._store, self._kind, change.record, self._include, with_columns=not self._has_columns)
        self._has_columns = True
        return _line(change.type, ENCODER.encode(row))

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata: dict[str, object] = {"resourceVersion": str(self._cursor.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        body = {"kind": self._kind.name, "apiVersion": self._kind.api_version, "metadata": metadata}
        return _line("BOOKMARK", ENCODER.encode(body))


def _line(event: str, obj: bytes) -> bytes:
    return b"".join((b'{"type":"', event.encode(), b'","object":', obj, b"}\n"))


def waker(stirred: asyncio.Event) -> Callable[[], None]:
    """Writers in any thread wake the stream once, however much they write before it reads."""
    loop = asyncio.get_running_loop()

    def wake() -> None:
        if not stirred.is_set():
            loop.call_soon_threadsafe(stirred.set)

    return wake


async def _wait(stirred: asyncio.Event, at_most_s: float) -> None:
    try:
        async with asyncio.timeout(max(at_most_s, 0)):
            await stirred.wait()
    except TimeoutError:
        return
