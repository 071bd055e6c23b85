"""The map's chunks: cells of nodes as rows, redrawn after node writes.

The map reads only these rows. `fleet.allocation.counters` calls this after a write.
"""

import struct
from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime
from hashlib import blake2b
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from fleet.map_cells.cell import CellColumns, NodeCells, cells_of
from fleet.messages import announce
from fleet.models import MapChunk, Node, Observer
from fleet.states.node import NodeState

NODES = 256  # per chunk, without gaps in the keys
TOO_MANY = 1000  # above it, the whole cluster is read
MARK_BYTES = 8
COUNTED = (
    "pk", "state_code", "is_held", "critical", "gpu_allocated", "gpu_allocatable", "gpu_expected",
    "slices_allocated", "slices_allocatable", "slices_expected",
    "shares_allocated", "shares_allocatable", "shares_expected", "physical_gpus",
)  # fmt: skip
# Attributes of a node on the map beside its cells and pools, with their columns.
LAID_OUT = {
    "name": "name",
    "zone": "zone",
    "nvlink_domain": "nvlink_domain",
    "gpu_product": "gpu_product",
    "driver_version": "reported_driver",
}

Drawn = tuple[bytes, NodeCells]  # of a node: mark and cells
NodeMessage = tuple[int, int] | tuple[int, int, str]


def draw(cluster_id: int, nodes: Collection[int]) -> None:
    """Redraws these nodes in the transaction that wrote them. Three queries, and one if they differ."""
    if len(nodes) > TOO_MANY:
        draw_all(cluster_id)
        return
    chunks = MapChunk.objects.filter(cluster_id=cluster_id, number__in={pk // NODES for pk in nodes})
    _write(cluster_id, nodes, list(chunks), _drawn(cluster_id, nodes))


def draw_all(cluster_id: int) -> int:
    """Redraws all nodes. Returns how many chunks were wrong."""
    chunks = list(MapChunk.objects.filter(cluster_id=cluster_id))
    drawn = _drawn(cluster_id, None)
    known = {key for chunk in chunks for key in keys_of(chunk)}
    return _write(cluster_id, known | drawn.keys(), chunks, drawn)


def node_messages(nodes: QuerySet[Node]) -> list[NodeMessage]:
    """Returns the nodes' state codes and cells for a message. One query."""
    rows = nodes.order_by().values_list("is_gpu_node", *COUNTED)
    return [(pk, code, _encode_cells(code, *rest)) if is_gpu else (pk, code) for is_gpu, pk, code, *rest in rows]


def announce_nodes(cluster_id: int, nodes: QuerySet[Node], *, kind: str, at: datetime) -> None:
    """Notifies browsers of a committed change of nodes. Two queries."""
    newest = Observer.batch_of(cluster_id)  # read before the nodes, so the nodes are at least as new
    announce.cluster_changed(cluster_id, seq=newest, nodes=node_messages(nodes), kinds=(kind,), at=at)


def announce_events(cluster_id: int, node_uids: Collection[str]) -> None:
    """Notifies browsers of domain events after the commit, with the nodes that they are about."""
    nodes = Node.objects.filter(cluster=cluster_id, uid__in=list(node_uids))
    now = timezone.now()
    transaction.on_commit(lambda: announce_nodes(cluster_id, nodes, kind="happened", at=now), robust=True)


def _encode_cells(code: int, *counted: Any) -> str:
    return b64encode(_cells(code, *counted).alone).decode()


def keys_of(chunk: MapChunk) -> tuple[int, ...]:
    return struct.unpack(f"<{len(chunk.keys) // 8}q", chunk.keys)


def columns_of(chunk: MapChunk) -> CellColumns:
    return CellColumns(*(bytes(each) for each in (chunk.states, chunk.sizes, chunk.gpus, chunk.parts)))


def _write(cluster_id: int, nodes: Iterable[int], chunks: Iterable[MapChunk], drawn: dict[int, Drawn]) -> int:
    by_number: dict[int, dict[int, Drawn]] = {}
    was: dict[int, bytes] = {}
    for chunk in chunks:
        marks = bytes(chunk.marks)
        every = zip(keys_of(chunk), columns_of(chunk).nodes(), strict=True)
        by_number[chunk.number] = {
            key: (marks[at * MARK_BYTES : (at + 1) * MARK_BYTES], each) for at, (key, each) in enumerate(every)
        }
        was[chunk.number] = _bytes_of(chunk)
    for key in nodes:
        of_piece = by_number.setdefault(key // NODES, {})
        of_piece.pop(key, None)
        if key in drawn:
            of_piece[key] = drawn[key]
    rows = [_chunk_row(cluster_id, number, found) for number, found in by_number.items() if found]
    changed = [row for row in rows if was.get(row.number) != _bytes_of(row)]
    empty = [number for number, found in by_number.items() if not found and number in was]
    if changed:
        columns = ("keys", "marks", "states", "sizes", "gpus", "parts")
        MapChunk.objects.bulk_create(
            changed, update_conflicts=True, unique_fields=("cluster", "number"), update_fields=columns
        )
    if empty:
        MapChunk.objects.filter(cluster_id=cluster_id, number__in=empty).delete()
    return len(changed) + len(empty)


def _bytes_of(chunk: MapChunk) -> bytes:
    return bytes(chunk.keys) + bytes(chunk.marks) + bytes(columns_of(chunk))


def _chunk_row(cluster_id: int, number: int, found: dict[int, Drawn]) -> MapChunk:
    ordered = sorted(found.items())
    columns = CellColumns.of(each for _, (_, each) in ordered)
    return MapChunk(
        cluster_id=cluster_id,
        number=number,
        keys=struct.pack(f"<{len(ordered)}q", *(key for key, _ in ordered)),
        marks=b"".join(mark for _, (mark, _) in ordered),
        states=columns.states,
        sizes=columns.sizes,
        gpus=columns.gpus,
        parts=columns.parts,
    )


def _drawn(cluster_id: int, nodes: Collection[int] | None) -> dict[int, Drawn]:
    """Returns the cells by node. None: all of the cluster."""
    found = Node.objects.filter(cluster_id=cluster_id).with_gpus().order_by()
    members = Node.pools.through.objects.filter(node__cluster_id=cluster_id).order_by("pool_id")
    if nodes is not None:
        found, members = found.filter(pk__in=nodes), members.filter(node_id__in=nodes)
    pools: dict[int, list[int]] = defaultdict(list)
    for node_id, pool_id in members.values_list("node_id", "pool_id"):
        pools[node_id].append(pool_id)
    split = len(COUNTED)
    return {
        row[0]: (_mark_of_chunks(*row[split:], *pools.get(row[0], ())), _cells(*row[1:split]))
        for row in found.values_list(*COUNTED, *LAID_OUT.values())
    }


def _mark_of_chunks(*known: Any) -> bytes:
    return blake2b(repr(known).encode(errors="surrogatepass"), digest_size=MARK_BYTES).digest()


def _cells(code: int, is_held: bool, critical: int, *counted: int | None) -> NodeCells:  # noqa: FBT001 - a column
    whole, slices, shares = (tuple(number or 0 for number in counted[at : at + 3]) for at in (0, 3, 6))
    taken, usable, expected = (a + b for a, b in zip(slices, shares, strict=True))
    return cells_of(
        code,
        is_held=is_held,
        is_critical=critical > 0,
        is_away=code == NodeState.RECONFIGURING,
        whole=(whole[0], whole[1], whole[2]),
        parts=(taken, usable, expected),
        physical=counted[9],
    )
