"""The nodes of a plan: nodes of its driver object, unmanaged nodes with our label, and the state of the others.

Usually from rows. What is final (an end, an exclusion) rests on the API server's own list instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Q

from fleet.allocation.devices import Offered
from fleet.models import Node
from fleet.observer.mirror.dra_offers import merge_offers
from fleet.observer.mirror.rows.node import node_row
from kube import client
from kube.structs import NodeSeen
from rollouts.engine.live_state import Live, NodesNow
from rollouts.engine.workloads import DriverPod, driver_pods
from rollouts.models import Hold, Plan
from rollouts.queries.driver_nodes import nodes_of

COLUMNS = (
    "uid", "name", "is_held", "held_by", "upgrade_state", "is_ready", "is_unschedulable", "driver_version",
    "driver_unknown_since", "created_at", "allocatable", "is_gpu_node", "kernel", "os_image", "mig_config",
    "mig_config_state", "plugin_config", "gpu_product", "layout", "physical_gpus",
)  # fmt: skip
SAID_LIVE = (
    "name", "is_held", "held_by", "upgrade_state", "is_ready", "is_unschedulable", "driver_version", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class PlanNodes:
    selected: tuple[Node, ...]  # a driver DaemonSet of the object runs on them, or should
    unmanaged_nodes: tuple[Node, ...]  # no longer, and they carry our label or are wanted to
    gone: Mapping[str, str]  # UID of a target or hold outside the selection → state of its node
    drivers: Mapping[str, DriverPod]  # node name → its driver pod
    holds: Mapping[str, Hold]  # of the plan, by the node's uid
    are_live: bool = False


def from_rows(plan: Plan, targets: Mapping[str, str]) -> PlanNodes:
    """Returns the plan's nodes from rows with five queries. `targets` is uid → name of every target."""
    selected = tuple(nodes_of(plan).only(*COLUMNS).order_by("name"))
    holds = _holds_by_uid(plan)
    missing = _planned_nodes(targets, holds)
    for node in selected:
        missing.pop(node.uid, None)
    there = Q(held_by=plan.mark) | Q(uid__in=missing) | Q(name__in=missing.values())
    rows = Node.objects.filter(there, cluster=plan.cluster_id).only(*COLUMNS).order_by("name")
    others = {node.uid: node for node in rows}
    return _sorted_out(plan, selected, others, missing, driver_pods(plan), holds)


def from_cluster(plan: Plan, live: Live, seen: NodesNow, targets: Mapping[str, str]) -> PlanNodes:
    """Returns the plan's nodes as the API server lists them; other facts, such as GPU counts, come from rows.

    :raises Unreadable: when a node of the plan exists and cannot be read; it must not count as removed
    """
    known = {node.uid: node for node in Node.objects.filter(cluster=plan.cluster_id).only(*COLUMNS).order_by()}
    nodes = [_node_from_list(plan, known.get(one.uid), one, seen.offered.get(one.name)) for one in seen.nodes]
    selects = [daemonset.node_selector.items() for daemonset in live.daemonsets if daemonset.node_selector]
    labels = {one.uid: one.labels.items() for one in seen.nodes}
    wanted = {
        node.uid
        for node in nodes
        if node.name in seen.driver_pods or any(selector <= labels[node.uid] for selector in selects)
    }
    selected = tuple(node for node in nodes if node.is_gpu_node and node.uid in wanted)
    holds = _holds_by_uid(plan)
    missing = _planned_nodes(targets, holds)
    if unread := sorted(name for uid, name in seen.unread.items() if uid in missing):
        raise client.Unreadable(f"Node {unread[0]} cannot be read.")
    for node in selected:
        missing.pop(node.uid, None)
    others = {node.uid: node for node in nodes if node.uid not in wanted or not node.is_gpu_node}
    return _sorted_out(plan, selected, others, missing, seen.driver_pods, holds, are_live=True)


def _holds_by_uid(plan: Plan) -> dict[str, Hold]:
    return {hold.node_uid: hold for hold in Hold.objects.filter(plan=plan).order_by("node_name")}


def _planned_nodes(targets: Mapping[str, str], holds: Mapping[str, Hold]) -> dict[str, str]:
    """Returns every node with a target or a hold of the plan (uid → name)."""
    return dict(targets) | {uid: hold.node_name for uid, hold in holds.items()}


def _sorted_out(
    plan: Plan,
    selected: tuple[Node, ...],
    others: Mapping[str, Node],
    missing: Mapping[str, str],
    drivers: Mapping[str, DriverPod],
    holds: Mapping[str, Hold],
    *,
    are_live: bool = False,
) -> PlanNodes:
    uids = {node.uid for node in selected}
    left = {uid: node for uid, node in others.items() if uid not in uids}
    kept = {uid for uid, hold in holds.items() if not hold.is_foreign and hold.is_blocking_changes}
    unmanaged_nodes = tuple(node for uid, node in left.items() if node.held_by == plan.mark or uid in kept)
    there = {node.name for node in (*selected, *left.values())}
    gone = {uid: _fate_of_node(plan, uid, name, left, there) for uid, name in missing.items()}
    return PlanNodes(selected, unmanaged_nodes, gone, drivers, holds, are_live)


def _fate_of_node(plan: Plan, uid: str, name: str, left: Mapping[str, Node], there: Iterable[str]) -> str:
    if uid in left:
        return f"is no longer selected by {plan.object_kind} {plan.object_name}"
    return "was deleted and created again with the same name" if name in there else "was deleted"


def _node_from_list(plan: Plan, known: Node | None, seen: NodeSeen, offered: Offered | None) -> Node:
    """Returns the node as listed. Its version comes from its DRA driver where no label names it."""
    row = merge_offers(node_row(seen), offered)
    node = known or Node(cluster=plan.cluster, uid=seen.uid)
    for column in SAID_LIVE:
        setattr(node, column, row[column])
    node.is_gpu_node = node.is_gpu_node or row["is_gpu_node"]
    node.driver_unknown_since = None  # blank: the version is unknown
    return node
