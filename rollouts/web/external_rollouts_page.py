"""The pages of external rollouts; they have no commands."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.observation_state import all_observations
from fleet.models import Node
from fleet.models.cluster import ClusterMode
from fleet.web.summary import cluster_for
from people.models import User
from rollouts.engine.baseline import read_baseline
from rollouts.lifecycle import TargetState
from rollouts.models import ExternalRollout, ExternalRolloutNode
from rollouts.queries.external_rollouts import SHOWN, ShownExternalRollout, rollout_suspects, shown_external_rollouts

MOST = 30  # rollouts in the list; each has its own page permanently
PER_PAGE = 100  # nodes
FIRST = ("failed", "changing", "before", "held", "changed", "gone")  # nodes, in the order in which they are looked at


def listed(user: User, *, cluster_id: int | None = None, now: datetime) -> list[ShownExternalRollout]:
    """Returns open rollouts, then the last ended ones. One query if there are none."""
    visible = ExternalRollout.objects.visible_to(user).told().select_related("cluster")
    if cluster_id is not None:
        visible = visible.filter(cluster=cluster_id)
    shown = shown_external_rollouts(visible.order_by(F("ended_at").desc(nulls_first=True), "-pk")[:MOST])
    observations = all_observations(now=now) if any(each.rollout.is_open for each in shown) else {}
    for each in shown:
        each.rollout.observation = observations.get(each.rollout.cluster_id)  # type: ignore[attr-defined]
    return shown


@part_response
def cluster_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    """Renders the rollouts of a cluster of the mode follow, or with earlier ones; otherwise nothing."""
    cluster = cluster_for(request, cluster_id)
    context = {
        "external_rollouts": listed(request.user, cluster_id=cluster_id, now=timezone.now()),
        "is_following": cluster.mode == ClusterMode.FOLLOW,
        "cluster": cluster,
    }
    return render(request, "rollouts/external_rollouts/_of_cluster.html", context)


def external_rollout(request: PersonRequest, rollout_id: int) -> HttpResponse:
    return render(request, "rollouts/external_rollouts/page.html", _context(request, rollout_id))


@part_response
def external_rollout_part(request: PersonRequest, rollout_id: int) -> HttpResponse:
    return render(request, "rollouts/external_rollouts/_body.html", _context(request, rollout_id))


def _context(request: PersonRequest, rollout_id: int) -> dict[str, Any]:
    visible = ExternalRollout.objects.visible_to(request.user).told().select_related("cluster")
    rollout, now = get_object_or_404(visible, pk=rollout_id), timezone.now()
    (shown,) = shown_external_rollouts([rollout])
    in_order = sorted(rollout.nodes.only("state", "node_name"), key=_sort_key_of_node)  # a baseline is some kB of JSON
    page = Paginator(in_order, PER_PAGE).get_page(request.GET.get("page"))
    rows = rollout.nodes.in_bulk([node.pk for node in page.object_list])
    of_page = [rows[node.pk] for node in page.object_list if node.pk in rows]
    page.object_list = _with_node_pages(request.user, rollout, of_page)
    observation = load_cluster_freshness(rollout.cluster, now=now).observation
    return {
        "shown": shown,
        "rollout": rollout,
        "cluster": rollout.cluster,
        "nodes": page,
        "observation": observation if rollout.is_open else None,
        "failed_before": rollout.failed_before(),
        "suspects": rollout_suspects(shown),
        "failing": {name for answer in shown.failing for name in answer.nodes},
    }


def _sort_key_of_node(node: ExternalRolloutNode) -> tuple[int, str]:
    return FIRST.index(SHOWN[TargetState(node.state)]), node.node_name


def _with_node_pages(
    user: User, rollout: ExternalRollout, nodes: Sequence[ExternalRolloutNode]
) -> Sequence[ExternalRolloutNode]:
    """Returns the nodes with the key of their page if this person sees it. One query."""
    uids = [node.node_uid for node in nodes]
    there = Node.objects.visible_to(user).filter(cluster=rollout.cluster_id, uid__in=uids)
    keys = dict(there.order_by().values_list("uid", "pk"))
    for node in nodes:
        node.node_id = keys.get(node.node_uid)  # type: ignore[attr-defined]
        node.shown = SHOWN[TargetState(node.state)]  # type: ignore[attr-defined]
        node.known = read_baseline(node.baseline)  # type: ignore[attr-defined]
    return nodes
