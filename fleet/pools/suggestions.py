"""Suggested pools: one per product, split where its nodes differ."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from fleet.models import Cluster, Node, Pool
from fleet.segments.facets import BY_KEY, UNKNOWN
from fleet.segments.selector_offers import Spelling, Unspeakable, pool_name
from gpu.resources.physical import TOTAL, known_gpus
from wording.numbers import count

APART = ("zone", "instance_type", "capacity_type")
KEYS = ("product", *APART)
PARTS_AT_MOST = 8  # a product with more values is not split

GroupValues = tuple[str, ...]  # values of KEYS


@dataclass(frozen=True)
class Suggestion:
    name: str
    selector: str
    nodes: int
    gpus: int | None  # None: unknown for all
    uncounted: int  # nodes with an unknown number of GPUs
    unpooled: int  # nodes without a pool
    pools: Sequence[Pool]  # pools with some of its nodes
    reason: str

    @property
    def is_needed(self) -> bool:
        return self.unpooled > 0


@dataclass
class _Group:
    nodes: int = 0
    gpus: int = 0
    uncounted: int = 0
    unpooled: int = 0
    pools: set[int] = field(default_factory=set)

    def add(self, other: "_Group") -> None:
        self.nodes += other.nodes
        self.gpus += other.gpus
        self.uncounted += other.uncounted
        self.unpooled += other.unpooled
        self.pools |= other.pools


def suggest(cluster: Cluster, seen: QuerySet[Node] | None = None) -> list[Suggestion]:
    """Returns suggestions, the biggest first. The number of queries depends on the labels that may name a product.

    `seen` limits the nodes; None: all.
    """
    nodes = (Node.objects.all() if seen is None else seen).filter(cluster=cluster, is_gpu_node=True)
    by_product: dict[str, dict[GroupValues, _Group]] = defaultdict(dict)
    for values, group in _groups(nodes).items():
        by_product[values[0]][values] = group
    spelling, pools = Spelling(cluster), {pool.pk: pool for pool in Pool.objects.filter(cluster=cluster)}
    found = []
    for product, groups in by_product.items():
        if product == UNKNOWN:
            continue
        for part, group, requirements, cut in _parts_of_product(spelling, groups):
            found.append(
                Suggestion(
                    name=pool_name(part),
                    selector=",".join(requirements),
                    nodes=group.nodes,
                    gpus=known_gpus(group.gpus, uncounted=group.uncounted),
                    uncounted=group.uncounted,
                    unpooled=group.unpooled,
                    pools=[pools[pk] for pk in sorted(group.pools) if pk in pools],
                    reason=_reason(part, group, cut),
                )
            )
    return sorted(found, key=lambda each: (-each.nodes, each.name))


def unnamed(cluster: Cluster) -> int:
    """Returns the number of GPU nodes without a known product, which no suggestion covers."""
    return Node.objects.filter(cluster=cluster, gpu_product="").with_gpus().count()


def _groups(nodes: QuerySet[Node]) -> dict[GroupValues, _Group]:
    """Groups the nodes. Two queries."""
    columns = [BY_KEY[key].column for key in KEYS]
    rows = nodes.order_by().values_list(*columns)
    counted = rows.annotate(
        number=Count("pk"),
        gpus_there=Coalesce(Sum(TOTAL), 0),
        uncounted=Count("pk", filter=Q(**{TOTAL: None})),
        loose=Count("pk", filter=~Q(pk__in=Node.pools.through.objects.values("node_id"))),
    )
    found = {_group_values(values): _Group(*numbers) for values, numbers in ((row[:-4], row[-4:]) for row in counted)}
    for *values, pool in rows.filter(pools__isnull=False).values_list(*columns, "pools").distinct():
        if group := found.get(_group_values(values)):
            group.pools.add(pool)
    return found


def _group_values(row: Iterable[str]) -> GroupValues:
    return tuple(value or UNKNOWN for value in row)


def _separating_keys(spelling: Spelling, groups: Iterable[GroupValues]) -> tuple[int, ...]:
    """Returns the positions in KEYS at which nodes of one product differ and labels can separate them."""
    seen = [set(values) for values in zip(*groups, strict=True)]
    differing = [at for at, key in enumerate(KEYS) if key in APART and 1 < len(seen[at]) <= PARTS_AT_MOST]
    return tuple(at for at in differing if all(_requirement_text(spelling, KEYS[at], value) for value in seen[at]))


def _parts_of_product(
    spelling: Spelling, groups: Mapping[GroupValues, _Group]
) -> Iterator[tuple[GroupValues, _Group, list[str], tuple[str, ...]]]:
    """Yields the parts of a product: values, nodes, requirements and separating facets."""
    cut = _separating_keys(spelling, groups)
    keys = ("product", *(KEYS[at] for at in cut))
    parts: dict[GroupValues, _Group] = defaultdict(_Group)
    for values, group in groups.items():
        parts[(values[0], *(values[at] for at in cut))].add(group)
    for part, group in parts.items():
        requirements = [_requirement_text(spelling, key, value) for key, value in zip(keys, part, strict=True)]
        if all(requirements):
            yield part, group, requirements, keys[1:]


def _requirement_text(spelling: Spelling, key: str, value: str) -> str:
    """Returns the requirement. Blank: no label expresses it."""
    try:
        return spelling.requirement(BY_KEY[key], [value])
    except Unspeakable:
        return ""


def _reason(part: GroupValues, group: _Group, cut: Sequence[str]) -> str:
    number = f"{count(group.nodes, 'node')} with {part[0]}"
    if not cut:
        return f"{number}."
    where = ", ".join(f"{BY_KEY[key].title} {value}" for key, value in zip(cut, part[1:], strict=True))
    words = " and ".join(BY_KEY[key].title for key in cut)
    return f"{number}, {where}: nodes of this product differ in {words}."
