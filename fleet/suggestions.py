"""Pools that what is really there suggests: one for each product, and apart where its nodes are not alike."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db.models import Count, IntegerField, Q, Sum
from django.db.models.functions import Coalesce

from fleet.facets import BY_KEY, UNKNOWN
from fleet.models import Cluster, Node, Pool
from fleet.spelling import Spelling, Unspeakable, pool_name

APART = ("zone", "instance_type", "capacity_type")
KEYS = ("product", *APART)
PARTS_AT_MOST = 8  # a product that is spread over more values is not cut by them

Values = tuple[str, ...]  # of KEYS


@dataclass(frozen=True)
class Suggestion:
    name: str
    selector: str
    nodes: int
    gpus: int
    unpooled: int  # of its nodes, those in no pool yet
    pools: Sequence[Pool]  # that have some of its nodes
    because: str

    @property
    def is_needed(self) -> bool:
        return self.unpooled > 0


@dataclass
class _Group:
    nodes: int = 0
    gpus: int = 0
    unpooled: int = 0
    pools: set[int] = field(default_factory=set)

    def add(self, other: "_Group") -> None:
        self.nodes += other.nodes
        self.gpus += other.gpus
        self.unpooled += other.unpooled
        self.pools |= other.pools


def suggest(cluster: Cluster) -> list[Suggestion]:
    """The biggest first. Queries by the number of labels that may name a product, not by what is there."""
    by_product: dict[str, dict[Values, _Group]] = defaultdict(dict)
    for values, group in _groups(cluster).items():
        by_product[values[0]][values] = group
    spelling, pools = Spelling(cluster), {pool.pk: pool for pool in Pool.objects.filter(cluster=cluster)}
    found = []
    for product, groups in by_product.items():
        if product == UNKNOWN:
            continue
        for part, group, requirements, cut in _of_product(spelling, groups, _cut(groups)):
            found.append(
                Suggestion(
                    name=pool_name(part),
                    selector=",".join(requirements),
                    nodes=group.nodes,
                    gpus=group.gpus,
                    unpooled=group.unpooled,
                    pools=[pools[pk] for pk in sorted(group.pools) if pk in pools],
                    because=_because(part, group, cut),
                )
            )
    return sorted(found, key=lambda each: (-each.nodes, each.name))


def unnamed(cluster: Cluster) -> int:
    """GPU nodes that no suggestion can name, because nothing says which product they have."""
    return Node.objects.filter(cluster=cluster, gpu_product="").with_gpus().count()


def _groups(cluster: Cluster) -> dict[Values, _Group]:
    """Two queries."""
    columns = [BY_KEY[key].column for key in KEYS]
    rows = Node.objects.filter(cluster=cluster).with_gpus().order_by().values_list(*columns)
    counted = rows.annotate(
        number=Count("pk"),
        gpus_there=Coalesce(Sum("gpu_expected"), 0, output_field=IntegerField()),
        loose=Count("pk", filter=~Q(pk__in=Node.pools.through.objects.values("node_id"))),
    )
    found = {_values(values): _Group(*numbers) for values, numbers in ((row[:-3], row[-3:]) for row in counted)}
    for *values, pool in rows.filter(pools__isnull=False).values_list(*columns, "pools").distinct():
        if group := found.get(_values(values)):
            group.pools.add(pool)
    return found


def _values(row: Iterable[str]) -> Values:
    return tuple(value or UNKNOWN for value in row)


def _cut(groups: Iterable[Values]) -> tuple[int, ...]:
    """Where in KEYS the nodes of one product are not alike."""
    seen = [set(values) for values in zip(*groups, strict=True)]
    return tuple(at for at, values in enumerate(seen) if KEYS[at] in APART and 1 < len(values) <= PARTS_AT_MOST)


def _of_product(
    spelling: Spelling, groups: Mapping[Values, _Group], cut: Sequence[int]
) -> Iterator[tuple[Values, _Group, list[str], tuple[str, ...]]]:
    """One for each part the product is cut into; one for all of it where no label names a part."""
    parts: dict[Values, _Group] = defaultdict(_Group)
    for values, group in groups.items():
        parts[(values[0], *(values[at] for at in cut))].add(group)
    keys = ("product", *(KEYS[at] for at in cut))
    try:
        spelled = [
            [spelling.requirement(BY_KEY[key], [value]) for key, value in zip(keys, part, strict=True)]
            for part in parts
        ]
    except Unspeakable:
        if cut:
            yield from _of_product(spelling, groups, ())
        return
    for (part, group), requirements in zip(parts.items(), spelled, strict=True):
        yield part, group, requirements, keys[1:]


def _because(part: Values, group: _Group, cut: Sequence[str]) -> str:
    number = f"{group.nodes} node{'' if group.nodes == 1 else 's'} with {part[0]}"
    if not cut:
        return f"{number}."
    where = ", ".join(f"{BY_KEY[key].title} {value}" for key, value in zip(cut, part[1:], strict=True))
    words = " and ".join(BY_KEY[key].title for key in cut)
    return f"{number}, {where}: nodes of this product differ in {words}."
