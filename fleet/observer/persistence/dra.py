"""Changes of nodes after changes of ResourceSlices or ResourceClaims."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import Q

from fleet.allocation.devices import DraDeviceKey, Offered, offered_on
from fleet.models import Node, Pod, ResourceClaim, ResourceSlice
from fleet.observer.mirror.diff import remember
from fleet.observer.mirror.dra_offers import merge_offers, unfolded
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.rows import Columns
from fleet.observer.persistence.upsert import Written, columns_of, save
from gpu.resources import is_gpu_resource
from kube.resources import NODES

AT_ONCE = 200


def reread_nodes(cluster_id: int, slices: Written, *, now: datetime) -> Written:
    names = nodes_of_slices(cluster_id, slices)
    written = Written(KINDS[NODES.name])
    if not names:
        return written
    offered = offered_on(cluster_id, names)
    found = Node.objects.filter(cluster_id=cluster_id, name__in=names)
    versions = dict(found.values_list("uid", "resource_version"))
    for old in found.values("id", "uid", *columns_of(Node)):
        row = remember(old, merge_offers(unfolded(old), offered.get(old["name"])), now=now)
        if row != old:
            written.changed.append((old, row))
    if written:
        save(cluster_id, written, versions, now=now)
    return written


def nodes_of_slices(cluster_id: int, slices: Written) -> set[str]:
    """Returns the nodes of these slices of GPUs, and of their pools. One query if a pool has several slices."""
    rows = [row for row in _all_rows(slices) if is_gpu_resource(row["driver"])]
    names = {row["node_name"] for row in rows}
    if pools := {row["pool"] for row in rows if (row["pool_slices"] or 1) > 1}:
        of_pools = ResourceSlice.objects.filter(cluster=cluster_id, pool__in=pools).order_by()
        names |= set(of_pools.values_list("node_name", flat=True))
    return names - {""}


def nodes_of_claims(cluster_id: int, claims: Written) -> set[str]:
    pods = {uid for row in _all_rows(claims) for uid in row["reserved_for"]}
    found = Pod.objects.filter(cluster_id=cluster_id, uid__in=pods).exclude(node_name="")
    return set(found.values_list("node_name", flat=True)) if pods else set()


def taken_on(cluster_id: int, pods: Iterable[tuple[str, str, list[str]]]) -> dict[str, dict[str, int]]:
    """Returns the amounts by node and resource that the claims of these pods (node, namespace, claims) hold.

    A shared device counts once; administrative access does not count. A slice that is created on claim occupies its
    board. Two queries for every 200 claims or nodes.
    """
    nodes: dict[tuple[str, str], str] = {}
    for node, namespace, names in pods:
        nodes |= {(namespace, name): node for name in names}
    if not nodes:
        return {}
    offered = _offered_on(cluster_id, set(nodes.values()))
    held: dict[str, set[DraDeviceKey]] = defaultdict(set)
    for claim, keys in _allocated(cluster_id, list(nodes)).items():
        held[nodes[claim]] |= keys
    return {node: offered[node].taken(keys) for node, keys in held.items() if node in offered}


def _all_rows(written: Written) -> list[Columns]:
    return [*written.alive, *written.gone, *(old for old, _ in written.changed)]


def _offered_on(cluster_id: int, nodes: Collection[str]) -> dict[str, Offered]:
    found: dict[str, Offered] = {}
    names = sorted(nodes)
    for start in range(0, len(names), AT_ONCE):
        found |= offered_on(cluster_id, names[start : start + AT_ONCE])
    return found


def _allocated(cluster_id: int, claims: list[tuple[str, str]]) -> dict[tuple[str, str], set[DraDeviceKey]]:
    allocated: dict[tuple[str, str], set[DraDeviceKey]] = {}
    for start in range(0, len(claims), AT_ONCE):
        wanted = Q()
        by_namespace: dict[str, list[str]] = defaultdict(list)
        for namespace, name in claims[start : start + AT_ONCE]:
            by_namespace[namespace].append(name)
        for namespace, names in by_namespace.items():
            wanted |= Q(namespace=namespace, name__in=names)
        rows = ResourceClaim.objects.filter(wanted, cluster_id=cluster_id).order_by()
        for namespace, name, results in rows.values_list("namespace", "name", "allocated"):
            allocated[namespace, name] = {
                (one["driver"], one["pool"], one["device"]) for one in results if not one.get("admin")
            }
    return allocated
