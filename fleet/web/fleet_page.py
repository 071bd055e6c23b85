"""The home page: the whole fleet, and each of its parts for updates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.allocation.amounts import GpuAmount, Offer, offers_of
from fleet.allocation.physical import physical_of
from fleet.messages.numbers import numbers_of
from fleet.models import Node, Pool
from fleet.queries import OF_ONE_NODE, ClusterRow, pool_names
from fleet.segments.facets import UNKNOWN
from fleet.states.node import TITLES, state_key, title_in_text
from fleet.web import states
from fleet.web.filters import ORDERS, NodeFilter, words_of
from fleet.web.summary import FleetRead, alike_nodes, freshness_by_cluster, lines_for, not_counted, read_fleet
from people.rights import Permission, scope_of

PER_PAGE = 50
# Kinds of operations, with their buttons.
NODE_ACTS: list[tuple[str, str]] = []  # kinds of operations on selected nodes, with titles; their app adds them
MOST_ACTED = 1000  # nodes of an operation, as `operations.kinds` has it
CLUSTERS_SHOWN = 6
NO_VERSION = {"", UNKNOWN}
NOT_IN_A_ROW = (*OF_ONE_NODE, "capacity", "requested", "conditions")


def fleet(request: PersonRequest) -> HttpResponse:
    clusters = lines_for(request, now=timezone.now())
    overview = _overview(request, clusters)
    context = {
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        "seq": numbers_of({line.cluster.pk: line.seq for line in clusters}),
        **overview,
        **_nodes(request, clusters),
        **_choices(clusters, overview["read"]),
    }
    return render(request, "fleet/home/page.html", context)


@part_response
def overview_part(request: PersonRequest) -> HttpResponse:
    """Renders summary and pools in one answer, since they share counts."""
    clusters = lines_for(request, now=timezone.now())
    return render(request, "fleet/home/_overview.html", _overview(request, clusters))


@part_response
def clusters_part(request: PersonRequest) -> HttpResponse:
    return render(request, "fleet/home/_clusters.html", _clusters(lines_for(request, now=timezone.now())))


@part_response
def nodes_part(request: PersonRequest) -> HttpResponse:
    clusters = lines_for(request, now=timezone.now())
    response = render(request, "fleet/home/_nodes.html", _nodes(request, clusters))
    if request.headers.get("HX-Trigger") == "filters":
        response["HX-Push-Url"] = f"{reverse('fleet')}?{NodeFilter.read(request.GET).query()}"
    return response


def _overview(request: PersonRequest, clusters: list[ClusterRow]) -> dict[str, Any]:
    read = read_fleet(request.user, alike_nodes(clusters), freshness_by_cluster(clusters))
    loading = [line for line in clusters if line.freshness.is_loading]
    unseen = [line for line in clusters if not line.freshness.is_fresh and line not in loading]
    return {
        "sums": read.whole,
        "bar": _bar(read.whole.gpus),
        "read": read,
        "unseen": unseen,
        "loading": loading,
        "not_counted": not_counted(clusters),
        "as_of": min(
            (at for line in unseen if line.freshness.has_begun and (at := line.freshness.last_seen_at)), default=None
        ),
        "to_suggest_for": "" if read.pools else next((line.cluster.name for line in clusters), "CLUSTER"),
        **_clusters(clusters),
    }


def _bar(gpus: GpuAmount) -> list[tuple[str, float, float]]:
    """Returns bar parts as (kind, start, width) of 100: allocated from the left, missing at the right."""
    whole = gpus.expected or 1
    allocated, free, missing = (100 * (part or 0) / whole for part in (gpus.allocated, gpus.free, gpus.missing))
    return [("allocated", 0, allocated), ("free", allocated, free), ("missing", 100 - missing, missing)]


def _clusters(clusters: list[ClusterRow]) -> dict[str, Any]:
    """Returns the first clusters, problems first; others are folded."""
    worst_first = sorted(clusters, key=lambda line: not line.is_bad)
    return {
        "clusters": clusters,
        "first_clusters": worst_first[:CLUSTERS_SHOWN],
        "more_clusters": worst_first[CLUSTERS_SHOWN:],
        "bad_clusters": sum(line.is_bad for line in clusters),
    }


class CountedPaginator(Paginator):
    """A paginator with a known count. `number` None: unknown."""

    def __init__(self, *given: Any, number: int | None) -> None:
        super().__init__(*given)
        if number is not None:
            self.count = number


@dataclass(frozen=True)
class NodeLine:
    node: Node
    cluster: str
    pools: Sequence[str]  # visible pools
    seen: states.NodeStateOnPage
    is_stale: bool
    last_seen_at: datetime | None
    uses: Sequence[tuple[str, int]]  # of its GPUs, unless all are whole
    offers: Sequence[Offer]


def _nodes(request: PersonRequest, clusters: list[ClusterRow]) -> dict[str, Any]:
    wanted = NodeFilter.read(request.GET)
    every, pools = Node.objects.visible_to(request.user).with_gpus(), Pool.objects.visible_to(request.user)
    # Sorts keys only; loads complete rows for this page.
    alike = alike_nodes(clusters)
    number = wanted.count_in(alike, {line.cluster.name: line.cluster.pk for line in clusters}, pools=pools)
    pages = CountedPaginator(wanted.narrow(every, pools=pools).values_list("pk", flat=True), PER_PAGE, number=number)
    page = pages.get_page(request.GET.get("page"))
    keys = list(page.object_list)
    chosen_driver = wanted.chosen("driver_version")
    rows = Node.objects.filter(pk__in=keys).defer(*NOT_IN_A_ROW).in_bulk()
    members, of = pool_names(keys, pools), {line.cluster.pk: line for line in clusters}
    return {
        "wanted": wanted,
        "node_acts": () if scope_of(request.user, Permission.RUN).nowhere else NODE_ACTS,
        "most_acted": MOST_ACTED,
        "cluster_chosen": wanted.chosen("cluster"),
        "product_chosen": wanted.chosen("product"),
        "driver_chosen": chosen_driver,
        "page": page,
        "total": sum(each.nodes for each in alike if each.is_gpu_node),
        "product_choices": sorted({each.gpu_product for each in alike if each.is_gpu_node} - {""}),
        "driver_choices": sorted(
            {chosen_driver, *(each.reported_driver for each in alike if each.is_gpu_node)} - NO_VERSION
        ),
        "looked_at": sum(line.freshness.has_begun for line in clusters),
        "lines": [
            _node_line(node, of[node.cluster_id], members.get(key, ()))
            for key in keys
            if (node := rows.get(key)) and node.cluster_id in of
        ],
        "hints": _filter_hints(every, pools, wanted, page),
    }


def _node_line(node: Node, of: ClusterRow, pools: Sequence[str]) -> NodeLine:
    freshness, physical = of.freshness, physical_of([node])
    return NodeLine(
        node,
        of.cluster.name,
        pools,
        states.state_of(node, is_live=freshness.is_fresh),
        not freshness.is_fresh,
        freshness.last_seen_at,
        physical.parts if physical.words else (),
        offers_of(node, knows_pods=freshness.knows_pods),
    )


def _filter_hints(every, pools, wanted: NodeFilter, page: Page) -> list[tuple[str, str, int]]:
    """Suggests filter parts to drop when a filter finds nothing, with the resulting counts."""
    if page.paginator.count or not wanted.active:
        return []
    less = [(name, wanted.without(name)) for name in wanted.active]
    found = [
        (words_of(name), f"?{looser.query()}#nodes", looser.narrow(every, pools=pools).count()) for name, looser in less
    ]
    return sorted((hint for hint in found if hint[2]), key=lambda hint: -hint[2])


def _choices(clusters: list[ClusterRow], read: FleetRead) -> dict[str, Any]:
    return {
        "cluster_choices": [line.cluster.name for line in clusters],
        "pool_choices": [f"{line.pool.cluster.name}/{line.pool.name}" for line in read.pools],
        "state_choices": [(state_key(state), title_in_text(state)) for state in TITLES],
        "order_choices": [(key, title) for key, (title, _) in ORDERS.items()],
    }
