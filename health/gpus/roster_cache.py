"""A short-lived cache of all GPUs per process: reading 40,000 rows takes longer than sorting them.

Visibility and displayed details are read each time. A read drops all GPUs that are older than `KEPT_S`, and those from
before a node or a GPU was added, removed or changed.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

from django.db.models import Count, Max

from fleet.models import Gpu, Node
from health.sources.cluster_telemetry import ClusterTelemetry

KEPT_S = 60.0
MOST_CLUSTERS = 64
COLUMNS = ("keys", "node_of", "index", "uuid", "product")


class SeenNode(NamedTuple):
    key: int
    cluster_id: int
    name: str
    product: str
    driver: str  # reported now; blank: not reported
    vendor: str = ""  # blank: unknown


@dataclass
class ClusterGpus:
    """The GPUs of one cluster in columns, by node name and index."""

    nodes: dict[int, SeenNode] = field(default_factory=dict)
    keys: list[int] = field(default_factory=list)
    node_of: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    uuid: list[str] = field(default_factory=list)
    product: list[str] = field(default_factory=list)
    _placed: tuple[str, list[int]] = ("", [])  # the frame's device keys, and the index of each GPU in them

    def places(self, telemetry: ClusterTelemetry) -> Sequence[int]:
        """Returns the position of each GPU among the boards of the snapshot; -1 if it is not there."""
        order, placed = self._placed
        if telemetry.kept is None:
            return [-1] * len(self.keys)
        if order != telemetry.kept.order:
            find, name_of = telemetry.boards.find, {key: node.name for key, node in self.nodes.items()}
            rows = zip(self.node_of, self.uuid, self.index, strict=True)
            found = (find(name_of[node], uuid, index) for node, uuid, index in rows)
            placed = [-1 if place is None else place for place in found]
            self._placed = (telemetry.kept.order, placed)
        return placed


_lock = Lock()
_kept: dict[int, tuple[Any, float, ClusterGpus]] = {}
_joined: list[tuple[Sequence[ClusterGpus], ClusterGpus]] = []  # at most one: most people see all clusters


def gpus_of(clusters: Collection[int]) -> dict[int, ClusterGpus]:
    """Returns the GPUs in the order of the keys. Three queries, and two more if they changed."""
    mark, now = _mark(), time.monotonic()
    with _lock:
        for key in [key for key, (its, at, _) in _kept.items() if its != mark or now - at >= KEPT_S]:
            del _kept[key]
        kept = {id(gpus) for *_, gpus in _kept.values()}
        _joined[:] = [one for one in _joined if all(id(part) in kept for part in one[0])]
        found = {key: _kept[key][-1] for key in clusters if key in _kept}
    lacking = [key for key in clusters if key not in found]
    if lacking:
        read = _load_clusters(lacking)
        found |= read
        with _lock:
            _kept.update({key: (mark, now, gpus) for key, gpus in read.items()})
            while len(_kept) > MOST_CLUSTERS:
                _kept.pop(next(iter(_kept)))
    return {key: found[key] for key in clusters}


def joined(parts: Sequence[ClusterGpus]) -> ClusterGpus:
    """Returns the GPUs of these clusters, one after the other. The last answer is kept; nobody may write to it."""
    if len(parts) == 1:
        return parts[0]
    with _lock:
        kept = next(iter(_joined), None)
    if kept and len(kept[0]) == len(parts) and all(one is other for one, other in zip(kept[0], parts, strict=True)):
        return kept[1]
    every = ClusterGpus(nodes=dict(chain.from_iterable(each.nodes.items() for each in parts)))
    for name in COLUMNS:
        setattr(every, name, list(chain.from_iterable(getattr(each, name) for each in parts)))
    with _lock:
        _joined[:] = [(parts, every)]
    return every


def forget() -> None:
    with _lock:
        _kept.clear()
        _joined.clear()


def _mark() -> tuple[Any, ...]:
    """Returns a value that differs once any row is added or removed, or any node changes."""
    nodes = Node.objects.with_gpus().order_by().aggregate(Count("pk"), Max("pk"), Max("changed_at"))
    # One at a time, SQLite finds both without a look at 40,000 rows.
    newest = Gpu.objects.order_by("-pk").values_list("pk", flat=True).first()
    return (*nodes.values(), Gpu.objects.count(), newest)


def _load_clusters(clusters: Collection[int]) -> dict[int, ClusterGpus]:
    found = {key: ClusterGpus() for key in clusters}
    nodes = Node.objects.with_gpus().filter(cluster__in=clusters).order_by("cluster", "name")
    by_node: dict[int, list[tuple[int, int, str, str]]] = {}
    for row in nodes.values_list("pk", "cluster_id", "name", "gpu_product", "reported_driver", "gpu_vendor"):
        node = SeenNode._make(row)
        found[node.cluster_id].nodes[node.key] = node
        by_node[node.key] = []
    gpus = Gpu.objects.filter(node__cluster__in=clusters).order_by("node_id", "index")
    for key, node_id, index, uuid, product in gpus.values_list("pk", "node_id", "index", "uuid", "product"):
        if node_id in by_node:
            by_node[node_id].append((key, index, uuid, product))
    for each in found.values():
        for node_id in each.nodes:
            for key, index, uuid, product in by_node[node_id]:
                each.keys.append(key)
                each.node_of.append(node_id)
                each.index.append(index)
                each.uuid.append(uuid)
                each.product.append(product)
    return found
