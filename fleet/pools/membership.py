"""The nodes of a pool: by selector, and nodes whose GPU labels are missing during a driver change."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edges.digests import digest
from fleet.models import Cluster, Node, Pool
from fleet.segments.label_conditions import labelled
from gpu.resources import known_gpus
from kube import selectors
from kube.selectors import Selector

GPU_LABELS = "nvidia.com/"
NOBODY = -1  # no pool's key
NAMED = 24  # nodes listed by name in a preview; others are counted


def belongs(selector: Selector, row: Mapping[str, Any], *, is_member: bool) -> bool:
    labels: Mapping[str, str] = row["labels"]
    if selector.matches(labels):
        return True
    if not is_member or row["driver_unknown_since"] is None:
        return False
    # The driver is being replaced, so its labels are missing; the node stays in its pool.
    failed = [requirement for requirement in selector.requirements if not requirement.matches(labels)]
    return all(requirement.key.startswith(GPU_LABELS) and requirement.key not in labels for requirement in failed)


def claimed(cluster: Cluster, text: str, *, pool: Pool | None = None) -> set[int]:
    """Returns the nodes that a pool with this selector would have; `pool` names nodes that may stay. Two queries.

    :raises BadSelector: with the part that cannot be parsed
    """
    selector = selectors.parse(text)
    nodes = Node.objects.filter(cluster=cluster).order_by()
    found = set(nodes.filter(labelled(selector)).values_list("pk", flat=True))
    if pool is None or pool.pk is None:
        return found
    silent = nodes.filter(pools=pool, driver_unknown_since__isnull=False).values("pk", "labels", "driver_unknown_since")
    return found | {row["pk"] for row in silent if belongs(selector, row, is_member=True)}


@dataclass(frozen=True)
class NodeName:
    pk: int
    name: str


@dataclass(frozen=True)
class Overlap:
    pool: Pool
    nodes: int


@dataclass(frozen=True)
class MembershipPreview:
    """The nodes of a future pool, and the changes."""

    nodes: int
    gpus: int | None  # None: unknown for all
    uncounted: int  # GPU nodes with an unknown number
    entering: int
    leaving: int
    enters: Sequence[NodeName]  # the first ones by name
    leaves: Sequence[NodeName]
    overlaps: Sequence[Overlap]  # other pools that share some nodes
    unpooled: int  # leaving nodes without another pool
    fingerprint: str  # equal for equal changes

    @property
    def is_quiet(self) -> bool:
        return not (self.entering or self.leaving)


@dataclass(frozen=True)
class PoolsAndNodes:
    """The nodes and pools of a cluster, loaded once for many previews. Three queries."""

    pools: Mapping[int, Pool]
    known: Mapping[int, tuple[str, int | None]]  # node → name and physical GPUs; None: unknown
    members: Mapping[int, set[int]]  # pool → nodes
    places: Mapping[int, set[int]]  # node → pools

    @classmethod
    def of(cls, cluster: Cluster) -> PoolsAndNodes:
        members, places = defaultdict(set), defaultdict(set)
        for node, place in Node.pools.through.objects.filter(pool__cluster=cluster).values_list("node_id", "pool_id"):
            members[place].add(node)
            places[node].add(place)
        nodes = Node.objects.filter(cluster=cluster).order_by()
        rows = nodes.values_list("pk", "name", "physical_gpus", "is_gpu_node")
        known = {pk: (name, gpus if is_gpu_node else gpus or 0) for pk, name, gpus, is_gpu_node in rows}
        return cls({each.pk: each for each in Pool.objects.filter(cluster=cluster)}, known, members, places)


class Labels:
    """The labels of a cluster's nodes, loaded once for many selectors. One query."""

    def __init__(self, cluster: Cluster) -> None:
        nodes = Node.objects.filter(cluster=cluster).order_by().values("pk", "labels", "driver_unknown_since")
        self._rows = {row["pk"]: row for row in nodes}
        self._by_key: dict[str, dict[str, set[int]]] = {}

    def claimed(self, selector: Selector, *, before: Collection[int] = ()) -> set[int]:
        """Returns the nodes of a selector without a query; `before` are nodes that may stay without labels."""
        found = set(self._rows)
        for requirement in selector.requirements:
            said = self._said(requirement.key)
            values = said if requirement.wanted is None else requirement.wanted
            holding = set[int]().union(*(said.get(value, ()) for value in values))
            found = found - holding if requirement.negated else found & holding
        staying = (self._rows[pk] for pk in before if pk in self._rows and pk not in found)
        return found | {row["pk"] for row in staying if belongs(selector, row, is_member=True)}

    def _said(self, key: str) -> dict[str, set[int]]:
        if key not in self._by_key:
            said = self._by_key[key] = defaultdict(set)
            for pk, row in self._rows.items():
                if key in row["labels"]:
                    said[row["labels"][key]].add(pk)
        return self._by_key[key]


def preview(
    cluster: Cluster,
    selector: str | None,
    *,
    pool: Pool | None = None,
    standing: PoolsAndNodes | None = None,
    labels: Labels | None = None,
) -> MembershipPreview:
    """Previews a pool with this selector; None: without a pool. Five queries of keys and names; none with `standing`
    and `labels`.

    :raises BadSelector: with the part that cannot be parsed
    """
    standing = standing or PoolsAndNodes.of(cluster)
    own = pool.pk if pool and pool.pk else NOBODY
    before = standing.members.get(own, set())
    if selector is None:
        after = set()
    elif labels is not None:
        after = labels.claimed(selectors.parse(selector), before=before)
    else:
        after = claimed(cluster, selector, pool=pool)
    enters, leaves = after - before, before - after
    gpus = [standing.known[pk][1] for pk in after if pk in standing.known]
    uncounted, total = gpus.count(None), sum(number or 0 for number in gpus)
    elsewhere = Counter(place for node in after for place in standing.places.get(node, ()) if place != own)
    return MembershipPreview(
        nodes=len(after),
        gpus=known_gpus(total, uncounted=uncounted),
        uncounted=uncounted,
        entering=len(enters),
        leaving=len(leaves),
        enters=_first(standing.known, enters),
        leaves=_first(standing.known, leaves),
        overlaps=[
            Overlap(standing.pools[place], number)
            for place, number in elsewhere.most_common()
            if place in standing.pools
        ],
        unpooled=sum(1 for node in leaves if not standing.places.get(node, set()) - {own}),
        fingerprint=digest([selector, sorted(enters), sorted(leaves)])[:16],
    )


def _first(known: Mapping[int, tuple[str, int | None]], keys: set[int]) -> list[NodeName]:
    return heapq.nsmallest(
        NAMED, (NodeName(pk, known[pk][0]) for pk in keys if pk in known), key=lambda each: each.name
    )
