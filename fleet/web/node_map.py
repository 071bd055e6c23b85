"""The map's data: a raster, which changes with every batch, and an index of nodes, which rarely does.

Both use the stored chunks (`fleet.map_cells.chunks`). A raster reads no node; an index reads nodes only once per
version.
"""

import hashlib
import json
import struct
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from django.http import HttpResponse
from django.utils import timezone

from edges.parts import packed, part_response
from edges.requests import PersonRequest
from fleet.allocation.amounts import PODS_READ
from fleet.freshness.observation_state import all_observations
from fleet.map_cells.cell import CellColumns
from fleet.map_cells.chunks import LAID_OUT, MARK_BYTES, columns_of, keys_of
from fleet.models import Cluster, MapChunk, Node, Pool
from fleet.models.node import members_of
from people.rights import Permission, Scope, scope_of

MAGIC = b"QDM1"
KEPT_INDEXES = 8  # some 40 kB each


@packed
@part_response
def raster(request: PersonRequest) -> HttpResponse:
    return HttpResponse(raster_for(request.user, now=timezone.now()), content_type="application/octet-stream")


@packed
@part_response
def index(request: PersonRequest) -> HttpResponse:
    return HttpResponse(_indexes.of(SeenMap.by(request.user)), content_type="application/json")


@dataclass(frozen=True)
class SeenCluster:
    cluster: Cluster
    batch: int
    keys: tuple[int, ...]
    marks: bytes
    columns: CellColumns


@dataclass(frozen=True)
class SeenMap:
    """The part of the map that one person may see, by cluster in the order of keys."""

    clusters: list[SeenCluster]
    pools: dict[int, str]  # titles

    @classmethod
    def by(cls, user: Any) -> "SeenMap":
        """Loads the map. Four queries, and one more for viewers of pools only."""
        scope = scope_of(user, Permission.SEE)
        # Batch numbers first: the chunks are then at least as new.
        clusters = list(Cluster.objects.visible_to(user).select_related("observer").order_by("pk"))
        pools = Pool.objects.visible_to(user).select_related("cluster").order_by("cluster__name", "name")
        titles = {pool.pk: f"{pool.cluster.name} / {pool.name}" if len(clusters) > 1 else pool.name for pool in pools}
        mine = _visible_nodes(scope, clusters)
        chunks: dict[int, list[MapChunk]] = {cluster.pk: [] for cluster in clusters}
        for chunk in MapChunk.objects.filter(cluster__in=chunks).order_by("cluster_id", "number"):
            chunks[chunk.cluster_id].append(chunk)
        return cls([_visible_cluster(each, chunks[each.pk], scope, mine) for each in clusters], titles)

    @property
    def version(self) -> str:
        """Returns the index version, which changes with names, positions, nodes and visibility."""
        digest = hashlib.sha256()
        for one in self.clusters:
            digest.update(f"{one.cluster.pk}:{one.cluster.name}:{len(one.keys)}\n".encode())
            digest.update(struct.pack(f"<{len(one.keys)}q", *one.keys) + one.marks)
        digest.update(json.dumps(self.pools).encode())
        return digest.hexdigest()[:32]


def _visible_nodes(scope: Scope, clusters: Iterable[Cluster]) -> frozenset[int]:
    """Returns the visible nodes of pools, for viewers without the whole cluster."""
    if all(scope.covers_cluster(cluster.pk) for cluster in clusters):
        return frozenset()
    return frozenset(members_of(scope.pool_ids).values_list("node_id", flat=True))


def _visible_cluster(cluster: Cluster, chunks: Collection[MapChunk], scope: Scope, mine: frozenset[int]) -> SeenCluster:
    batch = cluster.observer.batch if hasattr(cluster, "observer") else 0
    keys = tuple(key for chunk in chunks for key in keys_of(chunk))
    marks = b"".join(bytes(chunk.marks) for chunk in chunks)
    columns = CellColumns.joined(map(columns_of, chunks))
    if scope.covers_cluster(cluster.pk):
        return SeenCluster(cluster, batch, keys, marks, columns)
    shown = [at for at, key in enumerate(keys) if key in mine]
    nodes = list(columns.nodes())
    return SeenCluster(
        cluster,
        batch,
        tuple(keys[at] for at in shown),
        b"".join(marks[at * MARK_BYTES : (at + 1) * MARK_BYTES] for at in shown),
        CellColumns.of(nodes[at] for at in shown),
    )


def raster_for(user: Any, *, now: datetime) -> bytes:
    """Returns `QDM1`, the length of the head in four bytes, the JSON head, and `CellColumns` of all nodes of the
    index."""
    seen, observations = SeenMap.by(user), all_observations(now=now)
    with_pods = set(PODS_READ.values_list("cluster", flat=True))
    clusters = []
    for one in seen.clusters:
        observation = observations[one.cluster.pk]
        clusters.append(
            {
                "id": one.cluster.pk,
                "seq": one.batch,
                "nodes": len(one.keys),
                "is_seen": observation.is_live,
                # A live cluster's time comes from the connection.
                "last_seen_at": None
                if observation.is_live or observation.last_seen_at is None
                else observation.last_seen_at.isoformat(),
                "knows_pods": one.cluster.pk in with_pods,
            }
        )
    head = json.dumps({"index": seen.version, "clusters": clusters}).encode()
    return MAGIC + struct.pack("<I", len(head)) + head + bytes(CellColumns.joined(one.columns for one in seen.clusters))


class Indexes:
    """The latest indexes of this process by version, shared by viewers of the same nodes."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def of(self, seen: SeenMap) -> bytes:
        version = seen.version
        with self._lock:
            if version in self._made:
                self._made.move_to_end(version)
                return self._made[version]
        made = json.dumps(_index(seen, version), separators=(",", ":")).encode()
        with self._lock:
            self._made[version] = made
            while len(self._made) > KEPT_INDEXES:
                self._made.popitem(last=False)
        return made


_indexes = Indexes()


def _index(seen: SeenMap, version: str) -> dict[str, Any]:
    """Builds the columns in the order of the raster. `by` has grouping values, and each node's choice.

    Keys are stored as differences. A node removed meanwhile keeps its position.
    """
    clusters = [one.cluster for one in seen.clusters]
    nodes = Node.objects.filter(cluster__in=clusters).order_by()
    found = {row[0]: row[1:] for row in nodes.values_list("pk", *LAID_OUT.values())}
    members = Node.pools.through.objects.filter(pool_id__in=seen.pools).order_by("-pool_id")
    # Of several pools the first, so that each GPU is drawn once
    pool_of = dict(members.values_list("node_id", "pool_id"))
    keys = [key for one in seen.clusters for key in one.keys]
    gone = ("",) * len(LAID_OUT)
    rows = [found.get(key, gone) for key in keys]
    columns = {name: [row[at] for row in rows] for at, name in enumerate(LAID_OUT)}
    by = {
        "cluster": [one.cluster.name for one in seen.clusters for _ in one.keys],
        "pool": [seen.pools.get(pool_of.get(key, 0), "") for key in keys],
        **{name: column for name, column in columns.items() if name != "name"},
    }
    return {
        "version": version,
        "keys": list(_steps(keys)),
        "names": columns["name"],
        "by": {name: _indexed_values(values) for name, values in by.items()},
    }


def _steps(keys: Iterable[int]) -> Iterator[int]:
    before = 0
    for key in keys:
        yield key - before
        before = key


def _indexed_values(values: Iterable[str]) -> dict[str, list[Any]]:
    places: dict[str, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "at": at}
