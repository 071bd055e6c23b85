"""The page of one pool: node states, GPUs, versions, settings and history."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.allocation.tally import Alike, Tally, read_alike
from fleet.freshness.cluster import load_cluster_freshness
from fleet.models import Pool, SegmentSums
from fleet.queries import see_pool
from fleet.segments.facet_counts import CountsByValue, counts_of, groups_of
from fleet.segments.facets import BY_KEY, words_of
from fleet.states.node import NodeState, state_key, title_in_text
from fleet.web import states
from people.models import AuditEntry
from people.rights import Permission, why_not

SIDE_BY_SIDE = (
    "driver_version", "kernel", "product", "sharing", "os_image", "container_runtime", "zone", "instance_type",
    "capacity_type",
)  # fmt: skip
CHANGES = 10


def pool(request: PersonRequest, pool_id: int) -> HttpResponse:
    found = _pool(request, pool_id)
    return render(request, "fleet/pool/page.html", _context(request, found))


@part_response
def pool_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    return render(request, "fleet/pool/_body.html", _context(request, _pool(request, pool_id)))


def _pool(request: PersonRequest, pool_id: int) -> Pool:
    return get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)


def _context(request: PersonRequest, pool: Pool) -> dict[str, Any]:
    now = timezone.now()
    seen = load_cluster_freshness(pool.cluster, now=now)
    members = [each for each in read_alike(clusters=[pool.cluster_id]) if pool.pk in each.pools]
    sums = see_pool(pool, members, seen).tally
    where = f"cluster {pool.cluster.name}"
    return {
        "pool": pool,
        "sums": sums,
        "by_state": _nodes_by_state(sums),
        "others": (sums.nodes or 0) - (sums.gpu_nodes or 0),
        "versions": _versions(pool),
        "overlaps": _overlaps(request, pool, members),
        "changes": AuditEntry.objects.filter(subject=f"pool:{pool.pk}").order_by("-number")[:CHANGES],
        "most": CHANGES,
        "seen": seen,
        "query": f"pool={pool.cluster.name}/{pool.name}",
        "why_not": why_not(request.user, Permission.ADMINISTER, cluster_id=pool.cluster_id, where=where),
    }


def _nodes_by_state(sums: Tally) -> list[tuple[str, str, str, int]]:
    """Returns glyph, word, filter key and nodes by state, the worst first."""
    return [
        (states.GLYPHS[state], title_in_text(state), state_key(state), sums.by_state[state])
        for state in NodeState
        if sums.by_state.get(state)
    ]


def _versions(pool: Pool) -> list[tuple[str, str, list[tuple[str, str, int]]]]:
    """Returns known versions of its nodes: key, title, and values with text and nodes."""
    facets = [BY_KEY[key] for key in SIDE_BY_SIDE]
    groups = groups_of(SegmentSums.objects.in_pool(pool.pk), facets)
    found = []
    for facet in facets:
        counts = CountsByValue[str]()
        for group in groups:
            counts.add(group.values[facet.key], group)
        counted = counts_of(facet, counts, ())
        if counted.values and not counted.is_silent:
            found.append(
                (
                    facet.key,
                    facet.title,
                    [(each.value, words_of(facet.key, each.value), each.nodes) for each in counted.values],
                )
            )
    return found


def _overlaps(request: PersonRequest, pool: Pool, members: Sequence[Alike]) -> list[tuple[Pool, int]]:
    """Returns other pools that share nodes, with the number of nodes."""
    shared: Counter[int] = Counter()
    for each in members:
        shared.update(dict.fromkeys(each.pools - {pool.pk}, each.nodes))
    others = Pool.objects.visible_to(request.user).filter(pk__in=shared)
    return [(other, shared[other.pk]) for other in others]
