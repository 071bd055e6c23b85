from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

STALE_AFTER = timedelta(seconds=90)  # API servers send a bookmark about once a minute
UNREAD_MOST = 20  # of the objects of a kind that cannot be read, so many are kept


class BookmarkState(models.TextChoices):
    LISTING = "listing"  # the first list, or the one after a 410, is not complete
    WATCHING = "watching"  # the rows are the cluster's, as of `heard_at`
    FORBIDDEN = "forbidden"  # 403: the rule that would allow it is in `message`
    ABSENT = "absent"  # 404: the API group or kind is not installed
    FAILING = "failing"  # no answer, or one that cannot be read; `message` says which


VOID = frozenset({BookmarkState.FORBIDDEN, BookmarkState.ABSENT})  # of such a kind nothing can be read


class BookmarkQuerySet(models.QuerySet["Bookmark"]):
    def known(self, kind: str) -> BookmarkQuerySet:
        """Those of clusters whose rows of this kind ever were theirs: as `Bookmark.is_known` says it of one."""
        return self.filter(kind=kind, listed_at__isnull=False).exclude(state__in=VOID)


class Bookmark(models.Model):
    """Where the watch of one kind of one cluster stands, and when it last heard anything."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="bookmarks")
    kind = models.CharField(max_length=63)  # plural, with its group: nodes, daemonsets.apps
    state = models.CharField(max_length=16, choices=BookmarkState.choices, default=BookmarkState.LISTING)
    message = models.CharField(max_length=1000, blank=True)
    state_since = models.DateTimeField()
    resource_version = models.CharField(max_length=64, blank=True)  # blank: list first
    heard_at = models.DateTimeField(null=True)  # null: never
    listed_at = models.DateTimeField(null=True)  # when a whole list was last written
    unread = models.JSONField(default=dict)  # objects that cost nothing but themselves: {uid: {"name", "reason"}}

    objects = BookmarkQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="one_bookmark_per_kind")]

    @property
    def is_known(self) -> bool:
        """Whether its rows ever were the cluster's, and may still be read: else there is no data, which is not zero."""
        return self.listed_at is not None and self.state not in VOID

    @property
    def is_told(self) -> bool:
        """Whether there is none where none is held: they were listed once, or the cluster does not serve them."""
        return self.listed_at is not None or self.state == BookmarkState.ABSENT

    @property
    def has_more_unread(self) -> bool:
        """Whether there may be more that cannot be read than are kept."""
        return len(self.unread) >= UNREAD_MOST

    def is_fresh(self, *, now: datetime) -> bool:
        """Whether the rows may be judged: a whole list was written, and something was heard lately."""
        return self.listed_at is not None and self.heard_at is not None and now - self.heard_at <= STALE_AFTER
