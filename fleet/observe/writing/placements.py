"""Which pods hold GPUs of which node, kept for its history: a row when one begins, the same row when it ends.

Pods that only become ready or crash cost nothing.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from fleet.allocation.holders import held_on
from fleet.models import Node, Pod, PodPlacement
from fleet.observe.mirror.rows import Columns
from fleet.observe.writing.statement import upsert
from fleet.observe.writing.upsert import Written
from fleet.states.pod import ENDED

# Of so many nodes at once it is asked which GPUs were whose: more of them end when a list finds many gone, and then
# what exporters say is of later.
LOOKED_AT_MOST = 4
AT_ONCE = 500
ONE_EACH = ("cluster", "pod_uid")
COLUMNS = (*ONE_EACH, "node_uid", "node_name", "namespace", "name", "owner_kind", "owner_name", "resources", "since")
KEPT = ("uid", "namespace", "name", "owner_kind", "owner_name", "resources", "node_name", "started_at")


def keep(cluster_id: int, written: Written, *, now: datetime) -> None:
    """What begins and ends with these, before their rows are written: of what ends they still say who had which GPUs.

    A query and a statement where any begins; where any ends three queries, and what `held_on` costs.
    """
    begun = [row for row in written.new if _holds(row)]
    begun += [row for old, row in written.changed if _holds(row) and not _holds(old)]
    ended = {row["uid"]: (row, "") for row in written.gone if _holds(row)}
    ended |= {
        row["uid"]: (old, row["status"] or row["phase"])
        for old, row in written.changed
        if _holds(old) and not _holds(row)
    }
    if begun:
        _begin(cluster_id, begun, now=now)
    for part in _parts(list(ended)):
        _end(cluster_id, {uid: ended[uid] for uid in part}, now=now)


def begin_on(cluster_id: int, names: Collection[str], *, now: datetime) -> None:
    """What was heard of before these nodes were."""
    if names:
        rows = Pod.objects.filter(cluster_id=cluster_id, node_name__in=names).tenants().not_done()
        _begin(cluster_id, list(rows.values(*KEPT)), now=now)


def end_all(cluster_id: int, *, now: datetime) -> None:
    """Nobody sees this cluster's pods any more."""
    PodPlacement.objects.filter(cluster=cluster_id, until=None).update(until=now)


def _holds(row: Columns) -> bool:
    return bool(row["is_tenant"] and row["node_name"]) and row["phase"] not in ENDED


def _begin(cluster_id: int, rows: Sequence[Columns], *, now: datetime) -> None:
    names = {row["node_name"] for row in rows}
    uids = dict(Node.objects.filter(cluster=cluster_id, name__in=names).order_by().values_list("name", "uid"))
    placements = (_placement(cluster_id, row, uids[row["node_name"]], now) for row in rows if row["node_name"] in uids)
    upsert(PodPlacement, placements, unique=ONE_EACH)


def _placement(cluster_id: int, row: Columns, node_uid: str, now: datetime) -> dict[str, Any]:
    own = {name: row[name] for name in ("namespace", "name", "owner_kind", "owner_name", "resources", "node_name")}
    since = row["started_at"] or now
    more = {"cluster": cluster_id, "pod_uid": row["uid"], "node_uid": node_uid, "since": since}
    return own | more | {"until": None, "ended": "", "boards": []}


def _end(cluster_id: int, ended: dict[str, tuple[Columns, str]], *, now: datetime) -> None:
    there = PodPlacement.objects.filter(cluster=cluster_id, pod_uid__in=ended, until=None).order_by()
    boards = _boards(cluster_id, {row["node_name"] for row, _ in ended.values()}, now=now)
    rows = (
        {**row, "until": now, "ended": ended[row["pod_uid"]][1][:128], "boards": boards.get(row["pod_uid"], [])}
        for row in there.values(*COLUMNS)
    )
    upsert(PodPlacement, rows, unique=ONE_EACH)


def _boards(cluster_id: int, names: Collection[str], *, now: datetime) -> dict[str, list[int]]:
    if len(names) > LOOKED_AT_MOST:
        return {}
    nodes = Node.objects.filter(cluster=cluster_id, name__in=names).only("uid", "name", "cluster_id", "layout")
    found: dict[str, set[int]] = {}
    for held in held_on(list(nodes), now=now).values():
        for board in held.boards:
            for holder in board.holders:
                if board.index is not None:
                    found.setdefault(holder.pod.uid, set()).add(board.index)
    return {uid: sorted(indices) for uid, indices in found.items()}


def _parts(uids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (uids[start : start + AT_ONCE] for start in range(0, len(uids), AT_ONCE))
