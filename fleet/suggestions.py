"""Pools that what is really there suggests: one for each product, and apart where its nodes are not alike."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, IntegerField, Sum
from django.db.models.functions import Coalesce

from fleet.facets import BY_KEY, UNKNOWN
from fleet.membership import claimed
from fleet.models import Cluster, Node, Pool
from fleet.spelling import Spelling, Unspeakable, pool_name, with_gpus_only

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


def suggest(cluster: Cluster) -> list[Suggestion]:
    """The biggest first. Costs queries by the number of suggestions, of which there are few."""
    groups = _groups(cluster)
    spelling = Spelling(cluster)
    by_product: dict[str, list[Values]] = defaultdict(list)
    for values in groups:
        by_product[values[0]].append(values)
    found = []
    for product, parts in by_product.items():
        if product == UNKNOWN:
            continue
        cut = [
            at for at, key in enumerate(KEYS) if key in APART and 1 < len({part[at] for part in parts}) <= PARTS_AT_MOST
        ]
        found += _of_product(cluster, spelling, {part: groups[part] for part in parts}, cut)
    return sorted(found, key=lambda each: (-each.nodes, each.name))


def unnamed(cluster: Cluster) -> int:
    """GPU nodes that no suggestion can name, because nothing says which product they have."""
    return Node.objects.filter(cluster=cluster, gpu_product="").with_gpus().count()


def _groups(cluster: Cluster) -> dict[Values, _Group]:
    columns = [BY_KEY[key].column for key in KEYS]
    rows = Node.objects.filter(cluster=cluster).with_gpus().order_by().values_list(*columns)
    gpus = Coalesce(Sum("gpu_expected"), 0, output_field=IntegerField())
    counted = rows.annotate(number=Count("pk"), gpus_there=gpus)
    return {tuple(value or UNKNOWN for value in values): _Group(number, gpus) for *values, number, gpus in counted}


def _of_product(
    cluster: Cluster, spelling: Spelling, groups: dict[Values, _Group], cut: Sequence[int]
) -> list[Suggestion]:
    """One for each way the product is cut; one for all of it where a part cannot be named by a label."""
    parts: dict[Values, _Group] = defaultdict(_Group)
    for values, group in groups.items():
        part = (values[0], *(values[at] for at in cut))
        parts[part].nodes += group.nodes
        parts[part].gpus += group.gpus
    found = []
    for part in parts:
        try:
            requirements = [
                spelling.requirement(BY_KEY[key], [value])
                for key, value in zip(("product", *(KEYS[at] for at in cut)), part, strict=True)
            ]
        except Unspeakable:
            return _of_product(cluster, spelling, groups, ()) if cut else []
        found.append(_suggestion(cluster, part, parts[part], requirements, tuple(KEYS[at] for at in cut), len(parts)))
    return found


def _suggestion(
    cluster: Cluster, part: Values, group: _Group, requirements: list[str], cut: Sequence[str], siblings: int
) -> Suggestion:
    selector = with_gpus_only(cluster, requirements)
    there = claimed(cluster, selector)
    pairs = Node.pools.through.objects.filter(pool__cluster=cluster).values_list("node_id", "pool_id")
    placed = [(node, pool) for node, pool in pairs if node in there]
    return Suggestion(
        name=pool_name(part),
        selector=selector,
        nodes=group.nodes,
        gpus=group.gpus,
        unpooled=len(there - {node for node, _ in placed}),
        pools=list(Pool.objects.filter(pk__in={pool for _, pool in placed})),
        because=_because(part, group, cut, siblings),
    )


def _because(part: Values, group: _Group, cut: Sequence[str], siblings: int) -> str:
    number = f"{group.nodes} node{'' if group.nodes == 1 else 's'} with {part[0]}"
    if not cut:
        return f"{number}."
    words = " and ".join(BY_KEY[key].title for key in cut)
    where = ", ".join(f"{BY_KEY[key].title} {value}" for key, value in zip(cut, part[1:], strict=True))
    return f"{number}, {where}: one of {siblings} parts of this product that differ in {words}."
