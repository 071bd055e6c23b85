"""What nodes of a cluster were, from what is kept of their timelines."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from fleet.history.facts import changes_in
from fleet.models import Cluster, GoneNode, Node, NodeEvent

COLUMNS = ("is_ready", "upgrade_state", "mig_config_state", "driver_version")
KINDS = ("ready", "upgrade", "capacity", "version")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
Turn = tuple[datetime, Any]  # since when a column was so; the first: since who knows when


@dataclass(frozen=True)
class NodePast:
    node_id: int
    uid: str
    name: str
    seen_from: datetime  # before that nobody knew of it, or nothing is kept
    gone_at: datetime | None
    turns: Mapping[str, Sequence[Turn]]
    reasons: Mapping[datetime, str]  # why it was not ready, by when it became so
    because: str = ""  # why it is not ready now
    is_known: bool = True  # else it is gone, and nothing that is kept says how it was

    def is_there(self, at: datetime) -> bool:
        return self.seen_from <= at and (self.gone_at is None or at < self.gone_at)

    def turn(self, column: str, at: datetime) -> Turn:
        turns = self.turns[column]
        return turns[max(0, bisect_right(turns, at, key=lambda one: one[0]) - 1)]

    def was(self, column: str, at: datetime) -> Any:
        return self.turn(column, at)[1]

    def falls(self, since: datetime, until: datetime) -> int:
        """How often it stopped being ready."""
        turns = self.turns["is_ready"]
        return sum(before[1] is True and since <= after[0] <= until for before, after in pairwise(turns))


def pasts(cluster: Cluster, *, since: datetime) -> Iterator[NodePast]:
    """Of each GPU node that is, and each node that was. Three queries."""
    events: dict[str, list[tuple[datetime, str, dict[str, Any]]]] = defaultdict(list)
    rows = NodeEvent.objects.filter(cluster=cluster, kind__in=KINDS, at__gte=since).order_by("at", "pk")
    for uid, at, sentence, detail in rows.values_list("node_uid", "at", "sentence", "detail").iterator(chunk_size=2000):
        events[uid].append((at, sentence, detail))
    columns = ("pk", "uid", "name", "not_ready_because", *COLUMNS)
    for row in Node.objects.filter(cluster=cluster).with_gpus().values(*columns).iterator(chunk_size=500):
        yield _past(row["pk"], row["uid"], row["name"], None, events.get(row["uid"], ()), row)
    gone_since = GoneNode.objects.filter(cluster=cluster, gone_at__gte=since).exclude(was__Product="")
    for gone in gone_since.iterator(chunk_size=500):
        yield _past(gone.node_id, gone.uid, gone.name, gone.gone_at, events.get(gone.uid, ()), None)


def _past(
    node_id: int,
    uid: str,
    name: str,
    gone_at: datetime | None,
    events: Sequence[tuple[datetime, str, dict[str, Any]]],
    row: Mapping[str, Any] | None,
) -> NodePast:
    """`row`: what it is now; None: it is gone."""
    first = next((at for at, _, detail in events if "ready" in detail), LONG_AGO)
    changes = changes_in((at, detail) for at, _, detail in events)
    reasons = {at: sentence.partition(": ")[2] for at, sentence, detail in events if detail.get("column") == "is_ready"}
    at_first = row if row is not None else {"is_ready": _ready_at_first(events)}
    turns: dict[str, list[Turn]] = {}
    for column in COLUMNS:
        its = [one for one in changes if one.column == column]
        was = its[0].was if its else at_first.get(column, "")
        turns[column] = [(LONG_AGO, was), *((one.at, one.now) for one in its)]
    because = str(row["not_ready_because"]) if row is not None else ""
    is_known = row is not None or first != LONG_AGO or len(turns["is_ready"]) > 1
    return NodePast(node_id, uid, name, first, gone_at, turns, reasons, because, is_known)


def _ready_at_first(events: Sequence[tuple[datetime, str, dict[str, Any]]]) -> bool | None:
    return next((detail["ready"] for _, _, detail in events if "ready" in detail), None)
