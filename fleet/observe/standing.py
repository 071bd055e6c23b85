"""Where the watch of each kind stands, in memory, and what of that is written when."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fleet.models import Bookmark, BookmarkState

HEARD_EVERY = timedelta(seconds=10)


@dataclass
class Standing:
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
    is_urgent: bool = False  # a page should not wait for the next tick to see this

    @classmethod
    def of(cls, bookmark: Bookmark) -> "Standing":
        return cls(
            kind=bookmark.kind,
            state=BookmarkState(bookmark.state),
            message=bookmark.message,
            state_since=bookmark.state_since,
            resource_version=bookmark.resource_version if bookmark.listed_at else "",
            heard_at=bookmark.heard_at,
            listed_at=bookmark.listed_at,
            written_heard_at=bookmark.heard_at,
        )

    @property
    def is_listing(self) -> bool:
        return self.list_begun_at is not None

    @property
    def may_be_built_on(self) -> bool:
        """Whether kinds that depend on this one can begin: it is all here, or never will be."""
        return (self.listed_at is not None and not self.is_listing) or self.state in (
            BookmarkState.FORBIDDEN,
            BookmarkState.ABSENT,
        )

    def turn(self, state: BookmarkState, message: str, *, now: datetime) -> None:
        if (state, message) != (self.state, self.message):
            self.state_since = now if state != self.state else self.state_since
            self.state, self.message = state, message[:1000]
            self.is_urgent = True

    def begin_list(self, *, now: datetime) -> None:
        self.turn(BookmarkState.LISTING, "", now=now)
        self.list_begun_at, self.listed_uids, self.is_list_whole = now, set(), False
        self.resource_version = ""

    def complete_list(self, resource_version: str) -> None:
        """Its last page is here. What will be written is the cluster as of when the list was asked for."""
        self.is_list_whole, self.resource_version = True, resource_version
        self.heard_at = self.list_begun_at

    def end_list(self, *, now: datetime) -> None:
        """All of it is written, and what it lacks is deleted."""
        self.listed_at = now
        self.list_begun_at, self.listed_uids, self.is_list_whole = None, set(), False
        self.turn(BookmarkState.WATCHING, "", now=now)
        self.is_urgent = True

    def hear(self, *, now: datetime) -> None:
        self.heard_at = now
        self.turn(BookmarkState.WATCHING, "", now=now)

    def is_due(self, *, now: datetime, is_last: bool) -> bool:
        """Whether the row should be written although nothing else is. The last flush of a turn leaves nothing."""
        if self.is_urgent:
            return True
        if self.heard_at is None or self.heard_at == self.written_heard_at:
            return False
        return is_last or self.written_heard_at is None or now - self.written_heard_at >= HEARD_EVERY

    def columns(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "message": self.message,
            "state_since": self.state_since,
            "resource_version": self.resource_version,
            "heard_at": self.heard_at,
            "listed_at": self.listed_at,
        }

    def note_written(self) -> None:
        self.written_heard_at, self.is_urgent = self.heard_at, False
