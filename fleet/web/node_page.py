"""The page of one node: identity, stack, drivers (desired, possible, running) and events."""

from datetime import datetime
from typing import Any

from django.db.models import prefetch_related_objects
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.models import GoneNode, Node
from fleet.queries import node_gone, pools_for, see_node, warnings_of
from fleet.web import cpu_memory, node_gpus, states
from fleet.web.node_lookup import node_for
from gpu.conditions import ConditionVerdict
from gpu.cordons import whose_cordon
from people.models import User
from people.rights import Permission, scope_of


def gone(request: PersonRequest, node_id: int, *, template: str) -> HttpResponse:
    """Renders the page.

    :raises Http404: when the node is unknown or invisible
    """
    found = node_gone(node_id, user=request.user)
    if found is None:
        raise Http404
    seen = {"gone": found.row, "again": found.again}
    return render(request, template, seen)


CORDON_DOES = "Keeps new pods off the node. Pods that run stay. Undo it with kubectl uncordon."
DRAIN_DOES = (
    "Cordons the node and evicts its pods: jobs lose work, and emptyDir volumes are deleted. It waits for "
    "PodDisruptionBudgets and refuses pods without a controller."
)


def node(request: PersonRequest, node_id: int) -> HttpResponse:
    try:
        row = _load_node(request, node_id)
    except Http404:
        return gone(request, node_id, template="fleet/node/gone.html")
    seen = {"seq": numbers_of({row.cluster_id: row.cluster.batch})}
    return render(request, "fleet/node/page.html", {**seen, **_node(row, user=request.user, now=timezone.now())})


@part_response
def node_part(request: PersonRequest, node_id: int) -> HttpResponse:
    try:
        row = _load_node(request, node_id)
    except Http404:
        return gone(request, node_id, template="fleet/node/_gone.html")
    return render(request, "fleet/node/_body.html", _node(row, user=request.user, now=timezone.now()))


def _load_node(request: PersonRequest, node_id: int) -> Node:
    """Loads the node with visible pools and its cluster's bookmarks."""
    row = node_for(request, node_id)
    prefetch_related_objects([row], pools_for(request.user), "cluster__bookmarks")
    return row


def _node(row: Node, *, user: User, now: datetime) -> dict[str, Any]:
    detail = see_node(row, now=now)
    freshness = detail.cluster_freshness
    administers = scope_of(user, Permission.ADMINISTER).covers_cluster(row.cluster_id)
    context = f" --context {row.cluster.context}" if row.cluster.context and administers else ""
    return {
        "node": row,
        "former": GoneNode.objects.visible_to(user).filter(cluster=row.cluster_id, name=row.name).first(),
        "seen": states.state_of(row, is_live=freshness.is_fresh),
        "cordon": f"Cordoned{whose_cordon(row.cordoned_by, row.labels)}." if row.is_unschedulable else "",
        "step": states.step_of(row.upgrade_state) if row.upgrade_state else "",
        "freshness": freshness,
        "knows_pods": freshness.knows_pods,
        **node_gpus.of_node(detail, now=now),
        "cpu_memory": cpu_memory.of_node(detail.cpu_memory),
        "conditions": _conditions_by_verdict(row),
        "warnings": warnings_of(row, now=now),
        "labels": sorted(row.labels.items()),
        "commands": [
            f"kubectl{context} describe node {row.name}",
            f"kubectl{context} get node {row.name} -o yaml",
            f"kubectl{context} get pods -A --field-selector spec.nodeName={row.name} -o wide",
        ],
        "commands_that_change": [
            (f"kubectl{context} cordon {row.name}", CORDON_DOES),
            (f"kubectl{context} drain {row.name} --ignore-daemonsets --delete-emptydir-data", DRAIN_DOES),
        ],
    }


def _conditions_by_verdict(row: Node) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {verdict.value: [] for verdict in ConditionVerdict}
    for condition in row.reported_conditions:
        found[condition["verdict"]].append(condition)
    return found
