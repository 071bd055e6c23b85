"""Where the watch of each kind stands, in memory, and what of that is written when."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog

from fleet.models import Bookmark, BookmarkState
from fleet.models.bookmark import UNREAD_MOST, VOID
from kube.client.decoder import Unread

HEARD_EVERY = timedelta(seconds=10)
UNREAD_KEPT = 1000  # in memory, so that none of them is logged twice

log = structlog.get_logger(__name__)


@dataclass
class WatchCursor:
    """One kind's bookmark, ahead of its row by what was not written yet."""

    kind: str
    state: BookmarkState
    message: str
    state_since: datetime
    resource_version: str
    heard_at: datetime | None
    listed_at: datetime | None
    list_begun_at: datetime | None = None
    listed_uids: set[str] = field(default_factory=set)
    is_list_whole: bool = False  # every page is here, but what the list lacks is not deleted yet
    written_heard_at: datetime | None = None
    written_version: str = ""
    written: dict[str, Any] = field(default_factory=dict)  # what the row has; empty: nothing was written by us yet
    is_outgrown: bool = False  # what is kept of it is decided differently by now: its row says so to the next lease
    is_urgent: bool = False  # a page should not wait for the next tick to see this
    unread: dict[str, dict[str, str]] = field(default_factory=dict)  # by uid; by “?” and its name where it has none
    unread_before: dict[str, dict[str, str]] = field(default_factory=dict)  # by the list before the one being read

    @classmethod
    def of(cls, bookmark: Bookmark) -> "WatchCursor":
        return cls(
            kind=bookmark.kind,
            state=BookmarkState(bookmark.state),
            message=bookmark.message,
            state_since=bookmark.state_since,
            resource_version=bookmark.resource_version if bookmark.listed_at else "",
            heard_at=bookmark.heard_at,
            listed_at=bookmark.listed_at,
            written_heard_at=bookmark.heard_at,
            written_version=bookmark.resource_version,
            unread=dict(bookmark.unread),
        )

    @property
    def is_listing(self) -> bool:
        return self.list_begun_at is not None

    @property
    def is_worth_waiting_for(self) -> bool:
        """Whether a list is on its way that a lease should not end before."""
        return self.is_listing and self.state is BookmarkState.LISTING

    @property
    def may_be_built_on(self) -> bool:
        """Whether kinds that depend on this one can begin: it is all here, or never will be."""
        return (self.listed_at is not None and not self.is_listing) or self.state in VOID

    @property
    def lists_all(self) -> bool:
        """Whether what a whole list lacks is gone. With an object in it that has no UID, nobody can tell."""
        return not any(key.startswith("?") for key in self.unread)

    def move(self, state: BookmarkState, message: str, *, now: datetime) -> None:
        if (state, message) != (self.state, self.message):
            self.state_since = now if state != self.state else self.state_since
            self.state, self.message = state, message[:1000]
            self.is_urgent = True

    def fail(self, state: BookmarkState, message: str, *, now: datetime) -> bool:
        """Whether nothing is left of it: a kind that is not served has no objects, so its rows go.

        One that we may no longer see keeps them, and one that fails what was heard before it failed.
        """
        is_void = state is BookmarkState.ABSENT or (state is BookmarkState.FORBIDDEN and self.listed_at is None)
        is_new = self.state is not state or self.listed_at is not None
        self.move(state, message, now=now)
        if is_void and is_new:
            self.is_list_whole, self.listed_uids, self.unread = True, set(), {}
            self.resource_version, self.listed_at, self.list_begun_at = "", None, None
        return is_void

    def cannot_read(self, unread: Unread) -> bool:
        """It costs itself and one line in the log; its row stays as it was. False: that was known."""
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
        """Its last page is here. What will be written is the cluster as of when the list was asked for."""
        self.is_list_whole, self.resource_version = True, resource_version
        self.heard_at = self.list_begun_at

    def end_list(self, *, now: datetime) -> None:
        """All of it is written, and what it lacks is deleted."""
        if self.state in VOID:
            self.list_begun_at, self.is_list_whole = None, False
            return
        self.listed_at, self.unread_before = now, {}
        self.list_begun_at, self.listed_uids, self.is_list_whole = None, set(), False
        if self.state is BookmarkState.LISTING:
            self.move(BookmarkState.WATCHING, "", now=now)
        self.is_urgent = True

    def hear(self, *, now: datetime) -> None:
        self.heard_at = now
        self.move(BookmarkState.WATCHING, "", now=now)

    def outgrow(self) -> None:
        """It is listed again under the next lease, however this one ends."""
        self.is_outgrown = self.is_urgent = True

    def is_due(self, *, now: datetime, is_last: bool) -> bool:
        """Whether the row should be written although nothing else is. The last flush of a lease leaves nothing."""
        if self.is_urgent:
            return True
        is_written = (self.heard_at, self.resource_version) == (self.written_heard_at, self.written_version)
        if self.heard_at is None or is_written:
            return False
        return is_last or self.written_heard_at is None or now - self.written_heard_at >= HEARD_EVERY

    def columns(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "message": self.message,
            "state_since": self.state_since,
            "resource_version": "" if self.is_outgrown else self.resource_version,
            "heard_at": self.heard_at,
            "listed_at": self.listed_at,
            "unread": dict(list(self.unread.items())[:UNREAD_MOST]),
        }

    def new_columns(self) -> dict[str, Any]:
        """What the row does not have yet."""
        unknown = object()
        return {name: value for name, value in self.columns().items() if self.written.get(name, unknown) != value}

    def note_written(self) -> None:
        self.written = self.columns()
        self.written_heard_at, self.written_version, self.is_urgent = self.heard_at, self.resource_version, False
