"""The page of one cluster: connection, freshness, kinds, GPU stack and compatibility."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.kept_input import pop_kept_input
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.cluster_stack import CARDS, config_cards, dra_card, operand_lines, quota_card
from fleet.drivers.cluster_drivers import drivers_of, operator_trouble, unseen_in
from fleet.freshness import lag
from fleet.freshness.cluster import ClusterFreshness
from fleet.freshness.observation_state import unwatched_since_of
from fleet.models import Bookmark, BookmarkState, Cluster, DriverObject, Observer, Operand
from fleet.models.bookmark import VOID
from fleet.models.kinds import DRIVER_OBJECTS
from fleet.queries import ClusterRow
from fleet.web import cpu_memory
from fleet.web.cluster_commands import about
from fleet.web.cluster_exporters import exporter_line
from fleet.web.cluster_kinds import kind_lines, rules_of
from fleet.web.cluster_pods import troubled_pods
from fleet.web.summary import line_for, read_fleet
from kube.resources import (
    DAEMON_SETS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from people.rights import Permission, scope_of
from wording.instants import to_the_second
from wording.numbers import either

SKEW = timedelta(seconds=5)  # larger clock skews are shown


def cluster(request: PersonRequest, cluster_id: int) -> HttpResponse:
    line = line_for(request, cluster_id, now=timezone.now())
    seq = json.dumps({f"cluster-{cluster_id}": line.seq})
    context = {"seq": seq, "written": pop_kept_input(request, about(cluster_id)), **_cluster(request, line)}
    return render(request, "fleet/cluster/page.html", context)


@part_response
def cluster_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    return render(
        request, "fleet/cluster/_body.html", _cluster(request, line_for(request, cluster_id, now=timezone.now()))
    )


@part_response
def cluster_kinds_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Renders the kinds alone: their ages change every few seconds."""
    now = timezone.now()
    line = line_for(request, cluster_id, now=now)
    sees_all = scope_of(request.user, Permission.SEE).covers_cluster(cluster_id)
    context = {"cluster": line.cluster, **_kinds(line, sees_all=sees_all, now=now)}
    return render(request, "fleet/cluster/_kinds.html", context)


def observer_of(row: Cluster) -> Observer | None:
    """Returns the observer. None: never observed."""
    return row.observer if hasattr(row, "observer") else None


def _cluster(request: PersonRequest, line: ClusterRow) -> dict[str, Any]:
    now, row, freshness, bookmarks = timezone.now(), line.cluster, line.freshness, line.bookmarks
    sees_all = scope_of(request.user, Permission.SEE).covers_cluster(row.pk)
    objects = list(DriverObject.objects.filter(cluster=row))
    operands = list(Operand.objects.filter(cluster=row))
    read = read_fleet(request.user, line.alike, {row.pk: freshness})
    return {
        "cluster": row,
        "administers": scope_of(request.user, Permission.ADMINISTER).covers_cluster(row.pk),
        "sees_all": sees_all,
        "freshness": freshness,
        "watch": watch_of(row, freshness, now=now),
        **_kinds(line, sees_all=sees_all, now=now),
        "sums": read.whole,
        "read": read,
        "cpu_memory": cpu_memory.of_cluster(line.tally.cpu_memory),
        "troubled": troubled_pods(request.user, row.pk, as_of=freshness.pods_as_of, now=now),
        "drivers": drivers_of(row, objects, operands, unseen=unseen_in(bookmarks)),
        "may_try": not freshness.is_fresh and scope_of(request.user, Permission.STOP).covers_cluster(row.pk),
        "objects_as_of": _last_update(bookmarks, DRIVER_OBJECTS, freshness, now=now),
        **(_whole_cluster_context(line, objects, now=now) if sees_all else {}),
        **(_operands(operands, bookmarks, freshness, now=now) if sees_all else {}),
    }


def _kinds(line: ClusterRow, *, sees_all: bool, now: datetime) -> dict[str, Any]:
    row = line.cluster
    kinds = kind_lines(row, line.bookmarks, beside=[exporter_line(row, now=now)], now=now)
    return {"kinds": kinds if sees_all else [each.without_names() for each in kinds], "rules": rules_of(kinds)}


def _operands(
    operands: list[Operand], bookmarks: list[Bookmark], freshness: ClusterFreshness, *, now: datetime
) -> dict[str, Any]:
    """Returns operands. Outdated ones are never green; their time is shown."""
    mark = next((each for each in bookmarks if each.kind == DAEMON_SETS.name), None)
    as_of = _last_update(bookmarks, (DAEMON_SETS.name,), freshness, now=now)
    return {
        "operands": operand_lines(operands, as_of=as_of, now=now),
        "operands_as_of": as_of,
        "knows_operands": mark is not None and mark.listed_at is not None,
    }


def _last_update(
    bookmarks: list[Bookmark], kinds: Collection[str], freshness: ClusterFreshness, *, now: datetime
) -> datetime | None:
    """Returns the last update of these kinds. None: live, or never."""
    marks = [each for each in bookmarks if each.kind in kinds and (each.state not in VOID or each.listed_at)]
    if freshness.is_fresh and all(each.is_fresh(now=now) and each.state == BookmarkState.WATCHING for each in marks):
        return None
    return min((at for each in marks if (at := each.last_seen_at or each.listed_at)), default=None)


def _whole_cluster_context(line: ClusterRow, objects: list[DriverObject], *, now: datetime) -> dict[str, Any]:
    """Returns cluster-wide data, for viewers of the whole cluster."""
    row, told = line.cluster, {each.kind for each in line.bookmarks if each.is_complete}
    as_of = {
        f"{card}_as_of": _last_update(line.bookmarks, [kind.name for kind in kinds], line.freshness, now=now)
        for card, kinds in CARDS.items()
    }
    return {
        "objects": objects,
        "operator_trouble": operator_trouble(row),
        "configs": config_cards(row.pk, objects),
        "dra": dra_card(row.pk),
        "knows_claims": RESOURCE_CLAIMS.name in told,
        "knows_slices": RESOURCE_SLICES.name in told,
        "quotas": quota_card(row.pk),
        **as_of,
    }


@dataclass(frozen=True)
class WatchedBy:
    observer: Observer | None
    has_lease: bool
    glyph: str
    word: str
    problem: str  # blank: observed without lag
    skew: str  # of the API server; blank: small, or not measured


def watch_of(row: Cluster, freshness: ClusterFreshness, *, now: datetime) -> WatchedBy:
    observer = observer_of(row)
    if observer is None or not observer.epoch:
        problem = "No worker has watched the cluster yet. A running worker of the queue “observe” takes it within 10 s."
        return WatchedBy(observer, has_lease=False, glyph="waiting", word="nobody yet", problem=problem, skew="")
    has_lease = observer.lease_until > now
    if not has_lease and observer.next_look_at is not None and observer.next_look_at > now:
        word = f"{times(observer.failures)} without an answer"
        return WatchedBy(observer, has_lease=False, glyph="warn", word=word, problem="", skew=_skew(observer))
    unwatched_since = unwatched_since_of(observer, added_at=row.added_at, now=now)
    if not has_lease and unwatched_since is None:
        word = f"{times(observer.failures)} without an answer" if observer.failures else "between two leases"
        return WatchedBy(observer, has_lease=False, glyph="waiting", word=word, problem="", skew=_skew(observer))
    if unwatched_since is not None:
        ended = to_the_second(unwatched_since)
        problem = (
            f"No worker watches the cluster since {ended}. Check whether a worker of the queue “observe” "
            "runs, and read its log."
        )
        return WatchedBy(observer, has_lease=False, glyph="bad", word="nobody", problem=problem, skew=_skew(observer))
    problem = lag.sentence(row.name, lag_ms=observer.lag_ms, behind_since=observer.behind_since)
    seen = ("ok", "watched") if freshness.is_fresh else ("unseen", "watched, but not observed")
    glyph, word = ("warn", "behind") if problem else ("waiting", "watched, loading") if freshness.is_loading else seen
    return WatchedBy(observer, has_lease=True, glyph=glyph, word=word, problem=problem, skew=_skew(observer))


def times(number: int) -> str:
    return either(number, "once", f"{number} times")


def _skew(observer: Observer) -> str:
    skew_s = observer.clock_skew_s
    if skew_s is None or abs(skew_s) < SKEW.total_seconds():
        return ""
    side = "ahead of" if skew_s > 0 else "behind"
    return f"The API server's clock is {abs(skew_s):.0f} s {side} ours. Ages from its timestamps differ by as much."
