"""The past states of a cluster's nodes, from stored timelines."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

from django.db.models import Q

from fleet.history.facts import changes_in
from fleet.models import Cluster, GoneNode, Node, NodeEvent
from fleet.states.node import AT_REST, RECONFIGURING

COLUMNS = ("is_ready", "upgrade_state", "mig_config_state", "driver_version")
EVENT_KINDS = ("ready", "upgrade", "capacity", "version")
AT_ONCE = 500  # rows
AT_WORK: Mapping[str, Callable[[str], bool]] = {  # as `health.evaluation.gpu_evaluation.is_changing`
    "upgrade_state": lambda state: state not in AT_REST,
    "mig_config_state": RECONFIGURING.__contains__,
}
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
Turn = tuple[datetime, Any]  # since when a column was so; the first: since who knows when


@dataclass(frozen=True)
class NodePast:
    node_id: int
    uid: str
    name: str
    seen_from: datetime  # earlier history is unknown or deleted
    gone_at: datetime | None
    turns: Mapping[str, Sequence[Turn]]
    reasons: Mapping[datetime, str]  # why it was not ready, by when it became so
    reason: str = ""  # why it is not ready now
    is_known: bool = True  # False: the node is gone, and its earlier state is not stored
    # Columns with another change after this turn, at an unknown time.
    unknown_since: Mapping[str, datetime] = field(default_factory=dict)
    vendor: str = ""  # of its GPUs; blank: unknown, for example of a removed node

    def is_there(self, at: datetime) -> bool:
        return self.seen_from <= at and (self.gone_at is None or at < self.gone_at)

    def turn(self, column: str, at: datetime) -> Turn:
        turns = self.turns[column]
        return turns[max(0, bisect_right(turns, at, key=lambda one: one[0]) - 1)]

    def was(self, column: str, at: datetime) -> Any:
        return self.turn(column, at)[1]

    @property
    def unfinished_since(self) -> datetime | None:
        """Returns when an unfinished replacement began; None if there is none."""
        return self.known_until(
            column for column, is_at_work in AT_WORK.items() if is_at_work(self.turns[column][-1][1])
        )

    def known_until(self, columns: Iterable[str]) -> datetime | None:
        """Returns until when these columns are known; None means until now."""
        return min((self.unknown_since[column] for column in columns if column in self.unknown_since), default=None)

    def falls(self, since: datetime, until: datetime) -> int:
        """Returns how often the node stopped being ready."""
        return bisect_right(self._fell_at, until) - bisect_left(self._fell_at, since)

    @cached_property
    def _fell_at(self) -> Sequence[datetime]:
        """Returns the times, computed once. A node that flapped for a week has thousands."""
        return [after[0] for before, after in pairwise(self.turns["is_ready"]) if before[1] is True]


def pasts(cluster: Cluster, *, since: datetime) -> Iterator[NodePast]:
    """Yields each current and past GPU node. Three queries; only one node's events are in memory at a time."""
    columns = ("pk", "uid", "name", "not_ready_reason", "gpu_vendor", *COLUMNS)
    there = Node.objects.filter(cluster=cluster).with_gpus().order_by().values(*columns)
    gone_since = GoneNode.objects.filter(cluster=cluster, gone_at__gte=since).exclude(was__Product="").order_by()
    nodes: dict[str, list[_NodeNow]] = {}
    for row in there.iterator(chunk_size=AT_ONCE):
        nodes.setdefault(row["uid"], []).append(_NodeNow(row["pk"], row["uid"], row["name"], None, row))
    for gone in gone_since.iterator(chunk_size=AT_ONCE):
        nodes.setdefault(gone.uid, []).append(_NodeNow(gone.node_id, gone.uid, gone.name, gone.gone_at, None))
    said = NodeEvent.objects.filter(cluster=cluster, kind__in=EVENT_KINDS, at__gte=since)
    told = said.filter(Q(detail__column__in=COLUMNS) | Q(detail__has_key="ready")).order_by("node_uid", "at", "pk")
    rows = told.values_list("node_uid", "at", "sentence", "detail").iterator(chunk_size=AT_ONCE)
    for uid, its in groupby(rows, key=itemgetter(0)):
        if uid in nodes:
            events = [(at, sentence, detail) for _, at, sentence, detail in its]
            yield from (_past_of_node(one, events) for one in nodes.pop(uid))
    yield from (_past_of_node(one, ()) for several in nodes.values() for one in several)


@dataclass(frozen=True)
class _NodeNow:
    """The current node. `row` is None if it is gone."""

    node_id: int
    uid: str
    name: str
    gone_at: datetime | None
    row: Mapping[str, Any] | None


def _past_of_node(kept: _NodeNow, events: Sequence[tuple[datetime, str, dict[str, Any]]]) -> NodePast:
    row = kept.row
    first = next((at for at, _, detail in events if "ready" in detail), LONG_AGO)
    changes = changes_in((at, detail) for at, _, detail in events)
    reasons = {at: sentence.partition(": ")[2] for at, sentence, detail in events if detail.get("column") == "is_ready"}
    at_first = row if row is not None else {"is_ready": _ready_at_first(events)}
    turns: dict[str, list[Turn]] = {}
    unknown_since: dict[str, datetime] = {}
    for column in COLUMNS:
        its = [one for one in changes if one.column == column]
        was = its[0].was if its else at_first.get(column, "")
        turns[column] = [(LONG_AGO, was), *((one.at, one.now) for one in its)]
        if row is not None and turns[column][-1][1] != row[column]:
            unknown_since[column] = turns[column][-1][0]
    reason = str(row["not_ready_reason"]) if row is not None else ""
    vendor = str(row["gpu_vendor"]) if row is not None else ""
    is_known = row is not None or first != LONG_AGO or len(turns["is_ready"]) > 1
    return NodePast(
        kept.node_id, kept.uid, kept.name, first, kept.gone_at, turns, reasons, reason, is_known, unknown_since, vendor
    )


def _ready_at_first(events: Sequence[tuple[datetime, str, dict[str, Any]]]) -> bool | None:
    return next((detail["ready"] for _, _, detail in events if "ready" in detail), None)
