"""The kinds of a cluster: state, age, number of rows, and the missing rule."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import connection

from fleet.freshness.kinds import NODES, KindFreshness, freshness_of, kind_sort_key, never_listed
from fleet.models import Bookmark, Cluster
from fleet.models.kinds import MIRRORED, MirroredKind

WORST_FIRST = ("bad", "warn", "unseen", "waiting", "ok")
UNREAD_SHOWN = 3


@dataclass(frozen=True)
class KindLine:
    kind: str
    name: str
    glyph: str
    word: str
    message: str
    last_seen_at: datetime | None
    since: datetime | None
    rows: int | None  # None: never listed
    rule: str  # YAML of the missing rule; blank: allowed
    unread: int  # unreadable objects
    unread_names: str
    has_more_unread: bool = False
    message_has_names: bool = False  # of nodes

    @property
    def is_quiet(self) -> bool:
        """Tells whether no action is needed: it is read, or not installed."""
        return self.glyph == "ok" or self.word == "not installed"

    def without_names(self) -> "KindLine":
        """Returns the line without node names, for viewers of pools only."""
        return replace(self, unread_names="", message="" if self.message_has_names else self.message)


def kind_lines(
    cluster: Cluster, bookmarks: list[Bookmark], *, beside: Sequence[KindLine] = (), now: datetime
) -> list[KindLine]:
    """Returns the lines, problems first. `beside` are lines of data without a watch. One query."""
    counts = rows_held(cluster.pk)
    nodes = next((bookmark.message for bookmark in bookmarks if bookmark.kind == NODES), "")
    lines = [_kind_line(bookmark, counts, known=nodes, now=now) for bookmark in bookmarks]
    known = {bookmark.kind for bookmark in bookmarks}
    lines += [_line_of_unread_kind(never_listed(kind)) for kind in MIRRORED if bookmarks and kind not in known]
    lines += beside if bookmarks else ()
    return sorted(lines, key=lambda line: (line.is_quiet, WORST_FIRST.index(line.glyph), kind_sort_key(line.kind)))


def rows_held(cluster_id: int) -> dict[str, int]:
    """Counts the rows of all kinds in one SQL query, which Django would take longer to build than the database to
    run."""
    counts = ", ".join(_count(kind) for kind in MIRRORED.values())
    values = [str(value) for kind in MIRRORED.values() for value in (cluster_id, *dict(kind.shares).values())]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {counts}", values)
        return dict(zip(MIRRORED, cursor.fetchone(), strict=True))


def _count(kind: MirroredKind) -> str:
    table = connection.ops.quote_name(kind.model._meta.db_table)  # noqa: SLF001 -- Django's documented name for it
    columns = ("cluster_id", *dict(kind.shares))
    conditions = " AND ".join(f"{connection.ops.quote_name(column)} = %s" for column in columns)
    return f"(SELECT COUNT(*) FROM {table} WHERE {conditions})"  # noqa: S608 -- names of our own tables and columns


def _kind_line(bookmark: Bookmark, counts: Mapping[str, int], *, known: str, now: datetime) -> KindLine:
    """Builds a line. `known` is the reason shown above all kinds already."""
    seen = freshness_of(bookmark, now=now)
    return KindLine(
        kind=bookmark.kind,
        name=seen.name,
        glyph=seen.glyph,
        word=seen.word,
        message=bookmark.message if seen.is_trouble and bookmark.message != known else "",
        last_seen_at=bookmark.last_seen_at,
        since=bookmark.state_since,
        rows=counts.get(bookmark.kind) if bookmark.listed_at else None,
        rule=seen.rule.rstrip(),
        unread=len(bookmark.unread),
        unread_names="; ".join(_unread(each) for each in list(bookmark.unread.values())[:UNREAD_SHOWN]),
        has_more_unread=bookmark.has_more_unread,
    )


def _unread(said: Mapping[str, str]) -> str:
    return f"{said.get('name', '?')}: {said.get('reason', '')}".rstrip(": ")


def _line_of_unread_kind(seen: KindFreshness) -> KindLine:
    return KindLine(seen.kind, seen.name, seen.glyph, seen.word, "", None, None, None, "", 0, "")


def rules_of(lines: Sequence[KindLine]) -> str:
    """Returns one rule per API group for all forbidden kinds. Blank: at most one kind is forbidden."""
    kinds = [line.kind for line in lines if line.rule and ":" not in line.kind]  # other rules belong to a Role
    if len(kinds) < 2:
        return ""
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        plural, _, group = kind.partition(".")
        groups.setdefault(group, []).append(plural)
    rules = [
        f'- apiGroups: ["{group}"]\n  resources: [{", ".join(plurals)}]\n  verbs: [get, list, watch]'
        for group, plurals in sorted(groups.items())
    ]
    return "\n".join(rules)
