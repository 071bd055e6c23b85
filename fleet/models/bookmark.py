from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

STALE_AFTER = timedelta(seconds=90)  # API servers send a bookmark about once a minute
UNREAD_MOST = 20  # maximum number of unreadable objects stored per kind


class BookmarkState(models.TextChoices):
    LISTING = "listing"  # the first list, or the one after a 410, is incomplete
    WATCHING = "watching"  # the rows are right as of `last_seen_at`
    FORBIDDEN = "forbidden"  # 403: the missing rule is in `message`
    ABSENT = "absent"  # 404: the API group or kind is not installed
    FAILING = "failing"  # no answer, or an unreadable one; see `message`


VOID = frozenset({BookmarkState.FORBIDDEN, BookmarkState.ABSENT})  # kinds that cannot be read


class BookmarkQuerySet(models.QuerySet["Bookmark"]):
    def known(self, kind: str) -> BookmarkQuerySet:
        """Filters to clusters with complete rows of this kind, like `Bookmark.is_known`."""
        return self.filter(kind=kind, listed_at__isnull=False).exclude(state__in=VOID)

    def knows_all(self, cluster_id: int, *kinds: str) -> bool:
        """Tells whether the rows of all these kinds of a cluster are complete. One query."""
        known = self.filter(cluster=cluster_id, kind__in=kinds, listed_at__isnull=False).exclude(state__in=VOID)
        return known.count() == len(kinds)

    def are_all_fresh(self, cluster_id: int, *kinds: str, now: datetime) -> bool:
        """Tells whether the rows of all these kinds of a cluster may be evaluated, like `is_fresh`. One query."""
        rows = self.filter(cluster=cluster_id, kind__in=kinds, listed_at__isnull=False)
        return rows.filter(last_seen_at__gte=now - STALE_AFTER).exclude(state__in=VOID).count() == len(kinds)


class Bookmark(models.Model):
    """The state of the watch of one kind of one cluster, with its last update."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="bookmarks")
    kind = models.CharField(max_length=63)  # plural, with its group: nodes, daemonsets.apps
    state = models.CharField(max_length=16, choices=BookmarkState.choices, default=BookmarkState.LISTING)
    message = models.CharField(max_length=1000, blank=True)
    state_since = models.DateTimeField()
    resource_version = models.CharField(max_length=64, blank=True)  # blank: list first
    last_seen_at = models.DateTimeField(null=True)  # null: never
    listed_at = models.DateTimeField(null=True)  # when a complete list was last written
    unread = models.JSONField(default=dict)  # unreadable objects: {uid: {"name", "reason"}}
    row_version = models.SmallIntegerField(default=0, db_default=0)  # of its kind, when the list was written

    objects = BookmarkQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "kind"], name="one_bookmark_per_kind")]

    @property
    def is_known(self) -> bool:
        """Tells whether its rows were ever complete and can still be read. If not, there is no data, which is not
        zero."""
        return self.listed_at is not None and self.state not in VOID

    @property
    def is_complete(self) -> bool:
        """Tells whether missing rows mean missing objects: listed at least once, or not served by the cluster."""
        return self.listed_at is not None or self.state == BookmarkState.ABSENT

    @property
    def has_more_unread(self) -> bool:
        """Tells whether there may be more unreadable objects than stored."""
        return len(self.unread) >= UNREAD_MOST

    def is_fresh(self, *, now: datetime) -> bool:
        """Tells whether the rows may be evaluated: a complete list was written, with a recent update."""
        return self.listed_at is not None and self.last_seen_at is not None and now - self.last_seen_at <= STALE_AFTER
