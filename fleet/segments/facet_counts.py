"""Counts of nodes and GPUs by facet value, under a choice of values of other facets.

The counted groups are the counter rows of equal nodes.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import BigIntegerField, Case, Count, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Cast

from fleet.models import Bookmark, Cluster, Node, Pool, SegmentSums
from fleet.models.sums import REPORTED_DRIVER_OF_SUMS
from fleet.segments.facets import (
    FACETS,
    NO_POOL,
    NUMA,
    SEVERAL,
    SHARING_MODE,
    UNKNOWN,
    Choice,
    Facet,
    in_several_pools,
)
from fleet.segments.label_conditions import LabelValue, operator_versions
from gpu.resources import known_gpus
from gpu.resources.physical import COLUMNS as USE_COLUMNS
from kube.resources import NODES

V = TypeVar("V", bound=Hashable)
IN_SEVERAL = -1
KNOWN = Bookmark.objects.known(NODES.name).values("cluster")
IN_KNOWN = Q(cluster__in=KNOWN)
OF_SUMS: dict[str, Any] = {
    "reported_driver": REPORTED_DRIVER_OF_SUMS,
    "sharing_mode": SHARING_MODE,
    "a_pool": Case(
        When(pools="", then=None),
        When(pools__contains=",", then=Value(IN_SEVERAL)),
        default=Cast("pools", BigIntegerField()),
        output_field=BigIntegerField(),
    ),
}
OF_NODES: dict[str, Any] = {
    "sharing_mode": SHARING_MODE,
    "numa": LabelValue(NUMA),
    "a_pool": Case(
        When(pk__in=in_several_pools(), then=Value(IN_SEVERAL)),
        default=Subquery(Node.pools.through.objects.filter(node=OuterRef("pk")).values("pool_id")[:1]),
        output_field=BigIntegerField(),
    ),
}
NUMBERS = ("nodes", "uncounted", *USE_COLUMNS.values())


@dataclass(frozen=True)
class NodeGroup:
    values: Mapping[str, str]
    nodes: int
    uncounted: int  # nodes with an unknown number of GPUs
    gpus: int
    uses: tuple[int, ...]  # the same GPUs by use


@dataclass(frozen=True)
class ValueCount:
    value: str
    nodes: int
    uncounted_nodes: int  # nodes with an unknown number of GPUs, which are not counted
    gpus: int | None  # None: unknown for all
    is_chosen: bool = False


@dataclass(frozen=True)
class FacetCounts:
    facet: Facet
    values: tuple[ValueCount, ...]  # the most nodes first; chosen values are included even with 0

    @property
    def is_silent(self) -> bool:
        """Tells whether no node has a value, so that there is nothing to choose."""
        said = [each for each in self.values if each.value != UNKNOWN or each.is_chosen]
        return bool(self.values) and not said


class CountsByValue(Generic[V]):
    """Nodes and GPUs by value, or by values of several facets."""

    def __init__(self) -> None:
        self.nodes: Counter[V] = Counter()
        self.uncounted: Counter[V] = Counter()
        self.gpus: Counter[V] = Counter()

    def add(self, value: V, group: NodeGroup) -> None:
        self.nodes[value] += group.nodes
        self.uncounted[value] += group.uncounted
        self.gpus[value] += group.gpus

    def count(self, of: V, value: str, *, is_chosen: bool = False) -> ValueCount:
        gpus = known_gpus(self.gpus[of], uncounted=self.uncounted[of])
        return ValueCount(value, self.nodes[of], self.uncounted[of], gpus, is_chosen)


def counts_of(facet: Facet, counted: CountsByValue[str], chosen: tuple[str, ...]) -> FacetCounts:
    values = sorted({*counted.nodes, *chosen}, key=lambda value: (-counted.nodes[value], value))
    return FacetCounts(facet, tuple(counted.count(each, each, is_chosen=each in chosen) for each in values))


@dataclass(frozen=True)
class Segments:
    choice: Choice
    groups: Sequence[NodeGroup]
    matching: Sequence[NodeGroup]
    facets: Sequence[FacetCounts]

    @property
    def nodes(self) -> int:
        return sum(group.nodes for group in self.matching)

    @property
    def gpus(self) -> int | None:
        return known_gpus(sum(group.gpus for group in self.matching), uncounted=self.uncounted_nodes)

    @property
    def uncounted_nodes(self) -> int:
        return sum(group.uncounted for group in self.matching)

    @property
    def physical(self) -> Mapping[str, int]:
        """Returns the matching GPUs by use, and the uncounted nodes."""
        uses = [sum(column) for column in zip(*(group.uses for group in self.matching), strict=True)]
        found = dict.fromkeys(USE_COLUMNS.values(), 0) | dict(zip(USE_COLUMNS.values(), uses, strict=False))
        return found | {"uncounted": self.uncounted_nodes}

    @property
    def all_nodes(self) -> int:
        return sum(group.nodes for group in self.groups)


def segments_of(user: Any, choice: Choice, *, axes: Sequence[Facet] = ()) -> Segments:
    """Returns the counts over visible GPU nodes of known clusters. Five queries.

    A facet's counts respect the choices of all other facets. Expensive facets are counted only if chosen or among
    `axes`, since they have no counters and nodes must be read.
    """
    facets = [each for each in FACETS if not each.is_dear or choice.get(each.key) or each in axes]
    is_dear = any(each.is_dear for each in facets)
    groups = (
        _groups(_counts_of_nodes(Node.objects.visible_to(user).with_gpus().filter(IN_KNOWN), facets), facets)
        if is_dear
        else groups_of(SegmentSums.objects.visible_to(user), facets)
    )
    counted: dict[str, CountsByValue[str]] = {facet.key: CountsByValue() for facet in facets}
    matching = []
    for group in groups:
        failed = [key for key, values in choice.items() if values and group.values[key] not in values]
        if not failed:
            matching.append(group)
        if len(failed) > 1:
            continue
        for key in failed or counted:
            counted[key].add(group.values[key], group)
    return Segments(
        choice, groups, matching, [counts_of(each, counted[each.key], choice.get(each.key, ())) for each in facets]
    )


def unseen_by(user: Any) -> QuerySet[Cluster]:
    """Returns the clusters whose nodes are unknown, and so not counted."""
    return Cluster.objects.visible_to(user).exclude(pk__in=KNOWN).order_by("name")


def groups_of(sums: QuerySet[SegmentSums], facets: Sequence[Facet]) -> list[NodeGroup]:
    """Returns groups from counter rows, with values of their clusters and pools. Five queries."""
    columns = _columns(facets)
    annotated = sums.filter(IN_KNOWN).annotate(**{name: OF_SUMS[name] for name in columns if name in OF_SUMS})
    rows = annotated.values_list(*columns).annotate(**{f"sum_of_{column}": Sum(column) for column in NUMBERS})
    return _groups(rows, facets)


def _counts_of_nodes(nodes: QuerySet[Node], facets: Sequence[Facet]) -> QuerySet:
    columns = _columns(facets)
    annotated = nodes.order_by().annotate(**{name: OF_NODES[name] for name in columns if name in OF_NODES})
    uses = {f"sum_of_{column}": Sum(column) for column in USE_COLUMNS.values()}
    uncounted = Count("pk", filter=Q(physical_gpus=None))
    return annotated.values_list(*columns).annotate(number=Count("pk"), uncounted=uncounted, **uses)


def _columns(facets: Sequence[Facet]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(facet.column for facet in facets))


def _groups(rows: Iterable[tuple[Any, ...]], facets: Sequence[Facet]) -> list[NodeGroup]:
    columns, said_by = _columns(facets), _values_by_key()
    readers = [(facet.key, columns.index(facet.column), said_by.get(facet.key)) for facet in facets]
    return [
        NodeGroup(
            {key: (row[at] if said is None else said.get(row[at])) or UNKNOWN for key, at, said in readers},
            nodes,
            uncounted,
            sum(uses),
            tuple(uses),
        )
        for row in rows
        for nodes, uncounted, *uses in (row[len(columns) :],)
    ]


def _values_by_key() -> dict[str, dict[int | None, str]]:
    pools = list(Pool.objects.values_list("pk", "environment", "workload_class"))
    nowhere: dict[int | None, str] = {None: NO_POOL, IN_SEVERAL: SEVERAL}
    return {
        "cluster": dict(Cluster.objects.values_list("pk", "name")),
        "environment": nowhere | {pk: environment for pk, environment, _ in pools},
        "workload_class": nowhere | {pk: workload_class for pk, _, workload_class in pools},
        "operator_version": dict(operator_versions().items()),
    }


@dataclass(frozen=True)
class CrossLine:
    value: str
    cells: tuple[ValueCount, ...]


@dataclass(frozen=True)
class Cross:
    """A table of two facets, such as kernels by driver."""

    rows: Facet
    columns: Facet
    heads: tuple[str, ...]
    lines: tuple[CrossLine, ...]
    unshown: int  # nodes whose value is not in the table


def cross(groups: Sequence[NodeGroup], rows: Facet, columns: Facet, *, tall: int = 40, wide: int = 10) -> Cross:
    """Builds the table from the most common values of each facet."""
    counted = CountsByValue[tuple[str, str]]()
    for group in groups:
        counted.add((group.values[rows.key], group.values[columns.key]), group)
    sides = [_most_common(counted.nodes, side, at_most) for side, at_most in ((0, tall), (1, wide))]
    lines = tuple(CrossLine(row, tuple(counted.count((row, head), head) for head in sides[1])) for row in sides[0])
    shown = sum(cell.nodes for line in lines for cell in line.cells)
    return Cross(rows, columns, sides[1], lines, unshown=counted.nodes.total() - shown)


def _most_common(nodes: Counter[tuple[str, str]], side: int, at_most: int) -> tuple[str, ...]:
    sums: Counter[str] = Counter()
    for cell, number in nodes.items():
        sums[cell[side]] += number
    return tuple(sorted(sums, key=lambda value: (-sums[value], value))[:at_most])
