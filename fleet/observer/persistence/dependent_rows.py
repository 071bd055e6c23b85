"""Dependent changes, in the same transaction, so that no page shows only one of them."""

from datetime import datetime
from itertools import chain

from fleet.allocation.counters import count_written_nodes
from fleet.messages import listeners
from fleet.models import ExporterReading, GoneNode, Node, NodeEvent, OtherPod, Pod, ResourceClaim, ResourceSlice
from fleet.observer.mirror import timeline
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence import allocation, cpu_memory, dra, gpus, placements
from fleet.observer.persistence.upsert import Written
from fleet.observer.persistence.upsert_statement import keys_of, upsert
from fleet.pools.membership_writes import sort_nodes

TROUBLE = ("stuck_container", "restarts", "waiting_reason")


def precede(cluster_id: int, written: Written, *, now: datetime) -> None:
    """Saves history before rows are written or deleted."""
    if written.kind.model is Node and written.gone:
        placements.end_on(cluster_id, (row["uid"] for row in written.gone), now=now)
        _store_gone_nodes(cluster_id, written, now=now)
        # Stored by name, and the next machine of that name has other GPUs.
        ExporterReading.objects.filter(cluster=cluster_id, node_name__in=[row["name"] for row in written.gone]).delete()
    if written.kind.model is Pod:
        placements.record_placements(cluster_id, written, now=now)


def follow(cluster_id: int, written: Written, *, is_listing: bool, now: datetime) -> list[Written]:
    """Applies dependent changes and returns them.

    `is_listing` is part of a list; everything is counted once afterwards, since an aborted list starts again.
    """
    model = written.kind.model
    if model is Pod and _has_crashed(written):
        listeners.notify(listeners.CRASHED, cluster_id)
    if model is Node:
        _follow_nodes(cluster_id, written, now=now)
    elif model in (Pod, OtherPod) and not is_listing:
        _follow_pods(cluster_id, written)
    elif model is ResourceClaim:
        allocation.count(cluster_id, dra.nodes_of_claims(cluster_id, written))
    elif model is ResourceSlice:
        nodes = dra.reread_nodes(cluster_id, written, now=now)
        _follow_nodes(cluster_id, nodes, now=now)
        allocation.count(cluster_id, dra.nodes_of_slices(cluster_id, written))
        return [nodes]
    return []


def _has_crashed(written: Written) -> bool:
    """Tells whether a container of an operand is newly stuck, so that its log should be read."""
    pairs: list[tuple[Columns, Columns]] = [*(({}, row) for row in written.new), *written.changed]
    return any(
        row["operand"]
        and row["stuck_container"]
        and row["waiting_reason"]
        and any(row[column] != old.get(column) for column in TROUBLE)
        for old, row in pairs
    )


def _follow_pods(cluster_id: int, written: Written) -> None:
    if written.kind.model is Pod:
        allocation.count(cluster_id, allocation.touched_by(written))
    cpu_memory.count(cluster_id, cpu_memory.touched_by(written))


def _follow_nodes(cluster_id: int, written: Written, *, now: datetime) -> None:
    _write_timeline(cluster_id, written, now=now)
    gpus.follow(cluster_id, written)
    sort_nodes(cluster_id, written.alive)
    allocation.count(cluster_id, allocation.recut(written))
    if ids := _heirs(cluster_id, written):
        adopting = allocation.adopt(cluster_id, ids)
        placements.begin_on(cluster_id, adopting, now=now)
        cpu_memory.count(cluster_id, adopting | cpu_memory.bound_to(cluster_id, ids))


def _heirs(cluster_id: int, written: Written) -> dict[str, int]:
    """Returns nodes by name that orphaned pods may belong to: new ones, and ones with the name of a removed node.

    A list writes a recreated node first, and detects the removal of the old one with its last page.
    """
    left = keys_of(Node, cluster_id, "name", {row["name"] for row in written.gone})
    return left | {row["name"]: row["id"] for row in written.new}


def _store_gone_nodes(cluster_id: int, written: Written, *, now: datetime) -> None:
    """Stores what the page of the removed nodes shows."""
    titles = {"Product": "gpu_product", "Driver": "driver_version", "Kernel": "kernel", "OS": "os_image"}
    GoneNode.objects.bulk_create(
        (
            GoneNode(
                node_id=row["id"],
                cluster_id=cluster_id,
                uid=row["uid"],
                name=row["name"],
                gone_at=now,
                was={title: row.get(column) for title, column in titles.items()},
            )
            for row in written.gone
        ),
        ignore_conflicts=True,
    )
    ids = [row["id"] for row in written.gone]
    members = list(Node.pools.through.objects.filter(node_id__in=ids).values_list("node_id", "pool_id"))
    rows = dict(GoneNode.objects.filter(node_id__in=ids).values_list("node_id", "pk")) if members else {}
    through = GoneNode.pools.through
    through.objects.bulk_create(
        (through(gonenode_id=rows[node_id], pool_id=pool_id) for node_id, pool_id in members), ignore_conflicts=True
    )


def _write_timeline(cluster_id: int, written: Written, *, now: datetime) -> None:
    told = [(row, timeline.entries(None, row)) for row in written.new]
    told += [(row, timeline.entries(old, row)) for old, row in written.changed]
    told += [(row, [timeline.node_left_entry(row)]) for row in written.gone]
    events = (
        {
            "cluster": cluster_id,
            "node_uid": row["uid"],
            "node_name": row["name"],
            "at": now,
            "kind": entry.kind,
            "sentence": entry.sentence[:500],
            "detail": entry.detail,
        }
        for row, entries in told
        for entry in entries
    )
    upsert(NodeEvent, events, unique=())


AT_ONCE = 500


def count_all(cluster_id: int) -> None:
    """Recounts in short transactions, each updating the counters of its nodes once."""
    taken, requested = allocation.differing(cluster_id, None), cpu_memory.differing(cluster_id, None)
    nodes = list(dict.fromkeys(chain(*taken.values(), requested)))  # nodes with equal values are adjacent
    for start in range(0, len(nodes), AT_ONCE):
        some = set(nodes[start : start + AT_ONCE])
        with count_written_nodes(cluster_id, some):
            allocation.write(
                cluster_id, {each: keys for each, ids in taken.items() if (keys := some.intersection(ids))}
            )
            cpu_memory.write(cluster_id, {key: requested[key] for key in some & requested.keys()})
