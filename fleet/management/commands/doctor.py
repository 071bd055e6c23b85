import sys
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from fleet.freshness.kinds import is_optional, name_of
from fleet.models import Bookmark, BookmarkState, Cluster
from fleet.observer.cluster_registration import CannotAdd, ask

UNREAD = frozenset({BookmarkState.FORBIDDEN, BookmarkState.FAILING})  # failing now, however recent the last update


class Command(BaseCommand):
    help = "Shows whether each cluster answers and when it was last observed. Fails if something is wrong."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("clusters", nargs="*", metavar="NAME", help="names of clusters; default: every cluster")

    def handle(self, *args: Any, **given: Any) -> None:
        names = given["clusters"]
        clusters = list(Cluster.objects.filter(name__in=names) if names else Cluster.objects.all())
        if unknown := sorted(set(names) - {cluster.name for cluster in clusters}):
            raise CommandError(f"Unknown cluster: {', '.join(unknown)}.")
        if not clusters:
            self.stdout.write("No cluster exists yet. Add a cluster: bin/manage add_cluster NAME --context C")
        wrong = sum(self._check_cluster(cluster) for cluster in clusters)
        if wrong:
            self.stdout.write(f"{wrong} things are wrong.")
            sys.exit(1)

    def _check_cluster(self, cluster: Cluster) -> int:
        self.stdout.write(f"{cluster.name} ({cluster.mode})")
        complaints = [*self._asked(cluster), *self._check_watches(cluster)]
        for complaint in complaints:
            self.stdout.write(f"  WRONG  {complaint}")
        return len(complaints)

    def _asked(self, cluster: Cluster) -> Iterator[str]:
        try:
            found = ask(cluster.kubeconfig, cluster.context)
        except CannotAdd as refusal:
            yield str(refusal)
            return
        self.stdout.write(f"  ok     {found.server} answers, Kubernetes {found.server_version}")
        for note in found.notes:
            self.stdout.write(f"  note   {note}")
        if found.uid != cluster.uid:
            yield f"Another cluster answers: its kube-system has the UID {found.uid}, expected is {cluster.uid}."

    def _check_watches(self, cluster: Cluster) -> Iterator[str]:
        now = timezone.now()
        bookmarks = list(Bookmark.objects.filter(cluster=cluster).order_by("kind"))
        if not bookmarks:
            yield "No worker has watched it yet. Check that a worker with -Q observe runs, and beat."
        for bookmark in bookmarks:
            if bookmark.last_seen_at and bookmark.is_fresh(now=now) and bookmark.state not in UNREAD:
                ago = max(
                    0, int((now - bookmark.last_seen_at).total_seconds())
                )  # a worker's clock may be ahead of ours
                self.stdout.write(f"  ok     {bookmark.kind} observed {ago} s ago")
            elif bookmark.state == BookmarkState.FORBIDDEN and is_optional(bookmark.kind):
                self.stdout.write(
                    f"  note   {name_of(bookmark.kind)} may not be read. Only a cluster with one needs it."
                )
            elif bookmark.state == BookmarkState.ABSENT:
                self.stdout.write(f"  note   {bookmark.kind}: {bookmark.message or 'it is not installed.'}")
            else:
                since = bookmark.last_seen_at.isoformat(timespec="seconds") if bookmark.last_seen_at else "never"
                yield f"{bookmark.kind}: {bookmark.state}, last observed {since}. {bookmark.message}".rstrip()
