"""The watch state of each kind in memory, and its write to the bookmark."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from fleet.models import Bookmark, BookmarkState
from fleet.models.bookmark import UNREAD_MOST, VOID
from fleet.observer.mirror.kinds import KINDS
from kube.client.decoder import Unread

WRITE_LAST_SEEN_EVERY = timedelta(seconds=10)
UNREAD_KEPT = 1000  # in memory, so that none is logged twice

log = structlog.get_logger(__name__)


@dataclass
class WatchCursor:
    """The bookmark of one kind, ahead of its row by unwritten changes."""

    kind: str
    state: BookmarkState
    message: str
    state_since: datetime
    resource_version: str
    last_seen_at: datetime | None
    listed_at: datetime | None
    row_version: int = 0  # of the code that wrote the list
    list_begun_at: datetime | None = None
    listed_uids: set[str] = field(default_factory=set)
    is_list_whole: bool = False  # every page arrived, but missing objects are not deleted yet
    written_last_seen_at: datetime | None = None
    written_version: str = ""
    written: dict[str, Any] = field(default_factory=dict)  # columns of the row; empty: not written by us yet
    is_outgrown: bool = False  # its selection changed, which the row tells the next lease
    is_urgent: bool = False  # pages should show it before the next tick
    unread: dict[str, dict[str, str]] = field(default_factory=dict)  # by uid; without one, by “?” and name
    unread_before: dict[str, dict[str, str]] = field(default_factory=dict)  # in the list before the current one

    @classmethod
    def of(cls, bookmark: Bookmark) -> "WatchCursor":
        """Returns the cursor of a new lease. It lists first if the rows lack a value that this version writes."""
        is_whole = bookmark.listed_at is not None and bookmark.row_version == KINDS[bookmark.kind].row_version
        return cls(
            kind=bookmark.kind,
            state=BookmarkState(bookmark.state),
            message=bookmark.message,
            state_since=bookmark.state_since,
            resource_version=bookmark.resource_version if is_whole else "",
            last_seen_at=bookmark.last_seen_at,
            listed_at=bookmark.listed_at,
            row_version=bookmark.row_version,
            written_last_seen_at=bookmark.last_seen_at,
            written_version=bookmark.resource_version,
            unread=dict(bookmark.unread),
        )

    @property
    def is_listing(self) -> bool:
        return self.list_begun_at is not None

    @property
    def is_worth_waiting_for(self) -> bool:
        """Tells whether a list is in progress that the lease should wait for."""
        return self.is_listing and self.state is BookmarkState.LISTING

    @property
    def allows_dependents(self) -> bool:
        """Tells whether dependent kinds may start: it is complete, or unavailable."""
        return (self.listed_at is not None and not self.is_listing) or self.state in VOID

    @property
    def lists_all(self) -> bool:
        """Tells whether objects missing from a complete list are removed. Unknown if an object without UID is in it."""
        return not any(key.startswith("?") for key in self.unread)

    def move(self, state: BookmarkState, message: str, *, now: datetime) -> None:
        if (state, message) != (self.state, self.message):
            self.state_since = now if state != self.state else self.state_since
            self.state, self.message = state, message[:1000]
            self.is_urgent = True

    def fail(self, state: BookmarkState, message: str, *, now: datetime) -> bool:
        """Records a failure. Returns whether its rows must be deleted: an unserved kind has no objects.

        A forbidden or failing kind keeps its rows.
        """
        is_void = state is BookmarkState.ABSENT or (state is BookmarkState.FORBIDDEN and self.listed_at is None)
        is_new = self.state is not state or self.listed_at is not None
        self.move(state, message, now=now)
        if is_void and is_new:
            self.is_list_whole, self.listed_uids, self.unread = True, set(), {}
            self.resource_version, self.listed_at, self.list_begun_at = "", None, None
        return is_void

    def cannot_read(self, unread: Unread) -> bool:
        """Records an unreadable object; its row stays. False: already known."""
        key, said = unread.uid or f"?{unread.name}", {"name": unread.name, "reason": unread.reason}
        if self.unread.get(key) == said or (key not in self.unread and len(self.unread) >= UNREAD_KEPT):
            return False
        self.unread[key] = said
        self.is_urgent = True
        if self.unread_before.get(key) == said:
            return False
        log.warning("an object cannot be read", kind=self.kind, object=unread.name, reason=unread.reason)
        return True

    def can_read(self, uid: str) -> None:
        if self.unread and self.unread.pop(uid, {}):
            self.is_urgent = True

    def begin_list(self, *, now: datetime) -> None:
        self.move(BookmarkState.LISTING, "", now=now)
        self.unread_before, self.unread = self.unread_before | self.unread, {}
        self.list_begun_at, self.listed_uids, self.is_list_whole = now, set(), False
        self.resource_version = ""

    def complete_list(self, resource_version: str) -> None:
        """Records the last page. The written state is that of the list's request."""
        self.is_list_whole, self.resource_version = True, resource_version
        self.last_seen_at = self.list_begun_at

    def end_list(self, *, now: datetime) -> None:
        """Ends the list after its rows are written and missing ones deleted."""
        if self.state in VOID:
            self.list_begun_at, self.is_list_whole = None, False
            return
        self.listed_at, self.unread_before = now, {}
        self.row_version = KINDS[self.kind].row_version
        self.list_begun_at, self.listed_uids, self.is_list_whole = None, set(), False
        if self.state is BookmarkState.LISTING:
            self.move(BookmarkState.WATCHING, "", now=now)
        self.is_urgent = True

    def record_update(self, *, now: datetime) -> None:
        self.last_seen_at = now
        self.move(BookmarkState.WATCHING, "", now=now)

    def outgrow(self) -> None:
        """Requests a new list under the next lease."""
        self.is_outgrown = self.is_urgent = True

    def is_due(self, *, now: datetime, is_last: bool) -> bool:
        """Tells whether the row should be written by itself. The last flush of a lease writes everything."""
        if self.is_urgent:
            return True
        is_written = (self.last_seen_at, self.resource_version) == (self.written_last_seen_at, self.written_version)
        if self.last_seen_at is None or is_written:
            return False
        return is_last or self.written_last_seen_at is None or now - self.written_last_seen_at >= WRITE_LAST_SEEN_EVERY

    def columns(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "message": self.message,
            "state_since": self.state_since,
            "resource_version": "" if self.is_outgrown else self.resource_version,
            "last_seen_at": self.last_seen_at,
            "listed_at": self.listed_at,
            "row_version": self.row_version,
            "unread": dict(list(self.unread.items())[:UNREAD_MOST]),
        }

    def new_columns(self) -> dict[str, Any]:
        unknown = object()
        return {name: value for name, value in self.columns().items() if self.written.get(name, unknown) != value}

    def note_written(self) -> None:
        self.written = self.columns()
        self.written_last_seen_at, self.written_version, self.is_urgent = (
            self.last_seen_at,
            self.resource_version,
            False,
        )
