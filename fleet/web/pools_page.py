"""The page of all pools: totals, unpooled nodes, nodes in several pools, and suggestions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Cluster, Pool
from fleet.pools.suggestions import Suggestion, suggest, unnamed
from fleet.web.summary import alike_nodes, freshness_by_cluster, lines_for, read_fleet
from people.rights import Permission, scope_of


@dataclass(frozen=True)
class Suggested:
    cluster: Cluster
    suggestions: Sequence[tuple[Suggestion, str]]  # with the form's URL
    covered: int  # suggestions whose nodes all have a pool
    unnamed: int


def pools(request: PersonRequest) -> HttpResponse:
    clusters = Cluster.objects.visible_to(request.user)
    context = {
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        "clusters": clusters,
        "may_change": may_change(request, clusters),
        **_pools(request),
    }
    return render(request, "fleet/pools/page.html", context)


@part_response
def pools_part(request: PersonRequest) -> HttpResponse:
    return render(request, "fleet/pools/_table.html", _pools(request))


@part_response
def suggestions_part(request: PersonRequest) -> HttpResponse:
    """Renders suggestions separately, since reading labels is slow and only useful for admins."""
    clusters = may_change(request, Cluster.objects.visible_to(request.user))
    return render(request, "fleet/pools/_suggestions.html", {"suggested": [_suggested(each) for each in clusters]})


def may_change(request: PersonRequest, clusters) -> list[Cluster]:
    """Returns the clusters in which the person may change pools."""
    there = scope_of(request.user, Permission.ADMINISTER)
    return [cluster for cluster in clusters if there.covers_cluster(cluster.pk)]


def _pools(request: PersonRequest) -> dict[str, Any]:
    clusters = lines_for(request, now=timezone.now())
    read = read_fleet(request.user, alike_nodes(clusters), freshness_by_cluster(clusters))
    return {"read": read, "unseen": [line for line in clusters if not line.freshness.is_fresh]}


def _suggested(cluster: Cluster) -> Suggested:
    found = suggest(cluster)
    return Suggested(
        cluster,
        [(each, _form(cluster, each)) for each in found if each.is_needed],
        covered=sum(not each.is_needed for each in found),
        unnamed=unnamed(cluster),
    )


def _form(cluster: Cluster, each: Suggestion) -> str:
    taken = Pool.objects.filter(cluster=cluster, name=each.name).exists()
    name = f"{each.name}-2"[:63] if taken else each.name
    return f"{reverse('new-pool')}?{urlencode({'in': cluster.pk, 'selector': each.selector, 'name': name})}"
