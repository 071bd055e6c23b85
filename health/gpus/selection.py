"""Selects the GPUs that a user sees and that match the filter."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Cluster, Node, Pod, Pool
from fleet.models.node import members_of
from fleet.states.node import STATE_KEYS
from health.gpus.faults import FindingSeen, findings_of
from health.gpus.gpu_filter import NONE, GpuFilter
from health.gpus.roster import Roster
from health.gpus.roster_cache import COLUMNS, gpus_of, joined
from health.gpus.sort_order import ordered
from health.rules.base import Severity
from health.sources.cluster_telemetry import telemetry_of_clusters
from health.telemetry.metrics import METRICS
from people.models import User
from people.rights import Permission, scope_of

MOST_NODES = 1000  # nodes whose allocations are loaded to find the GPUs of a namespace
FAULTS = frozenset({Severity.CRITICAL.value, Severity.WARNING.value})


class TooWide(Exception):
    """The filter would read more than one request may."""


def read_roster(user: User, wanted: GpuFilter, *, now: datetime, stop: int | None = None) -> Roster:
    """Selects GPUs with ten queries at most, and those of `allocations_on` for a namespace filter.

    `stop` limits how many are sorted.

    :raises TooWide: with the sentence
    """
    scope = scope_of(user, Permission.SEE)
    clusters = dict(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))
    parts = list(gpus_of(clusters).items())
    every = joined([gpus for _, gpus in parts])
    columns: dict[str, Any] = {name: getattr(every, name) for name in COLUMNS}
    roster = Roster(
        total=0,
        parts=parts,
        nodes=every.nodes,
        findings=findings_of(user),
        telemetry=telemetry_of_clusters(clusters, wanted.metrics, now=now),
        **columns,
    )
    found: Collection[int] = range(len(roster.keys))
    partly = [pk for pk in clusters if not scope.covers_cluster(pk)]
    if partly:
        visible = set(Node.objects.visible_to(user).order_by().values_list("pk", flat=True))
        found = [at for at in found if roster.node_of[at] in visible]
    roster.total = len(found)
    nodes = _nodes(user, wanted)
    if nodes is not None:
        found = [at for at in found if roster.node_of[at] in nodes]
    picked = _pick_gpus(roster, found, wanted, now=now)
    if wanted.metric:
        picked, roster.without_value = _gpus_by_reading(roster, picked, wanted, now=now.timestamp())
    roster.matching = len(picked)
    roster.order = ordered(roster, picked, wanted, now=now.timestamp(), stop=stop)
    return roster


def _nodes(user: User, wanted: GpuFilter) -> set[int] | None:
    """Returns the nodes to restrict to; None means any."""
    found = Node.objects.with_gpus().order_by()
    if wanted.cluster:
        found = found.filter(cluster__name=wanted.cluster)
    if wanted.pool:
        cluster, _, pool = wanted.pool.rpartition("/")
        named = Pool.objects.visible_to(user).filter(name=pool, **{"cluster__name": cluster} if cluster else {})
        found = found.filter(pk__in=members_of(named.values("pk")))
    if wanted.state:
        found = found.filter(state_code=STATE_KEYS.get(wanted.state, -1))
    is_any = not (wanted.cluster or wanted.pool or wanted.state)
    return None if is_any else set(found.values_list("pk", flat=True))


def _pick_gpus(roster: Roster, those: Collection[int], wanted: GpuFilter, *, now: datetime) -> Collection[int]:
    found = those
    if wanted.product:
        found = [at for at in found if roster.product[at] == wanted.product]
    if wanted.q:
        text = wanted.q.casefold()
        named = {key for key, node in roster.nodes.items() if text in node.name.casefold()}
        found = [at for at in found if roster.node_of[at] in named or text in roster.uuid_of(at).casefold()]
    if wanted.severity or wanted.faults:
        found = [at for at in found if _has_finding(roster.finding(at), wanted)]
    if wanted.namespace:
        allocated = _allocated_to(roster, wanted.namespace, {roster.node_of[at] for at in found}, now=now)
        found = [at for at in found if roster.keys[at] in allocated]
    return found


def _gpus_by_reading(
    roster: Roster, those: Collection[int], wanted: GpuFilter, *, now: float
) -> tuple[Collection[int], int]:
    """Returns the GPUs that match by their reading, and how many have no value to compare.

    An unknown metric matches none.
    """
    if wanted.metric not in METRICS:
        return [], 0
    is_wanted: list[bool | None] = []
    for cluster, gpus in roster.parts:
        telemetry = roster.telemetry[cluster]
        for node, place in zip(gpus.node_of, gpus.places(telemetry), strict=True):
            board, its = (None if place < 0 else place), gpus.nodes[node]
            one = telemetry.read(wanted.metric, board, node=its.name, vendor=its.vendor, now=now)
            is_wanted.append(None if wanted.compares and one.value is None else wanted.wants(one))
    return [at for at in those if is_wanted[at]], sum(is_wanted[at] is None for at in those)


def _has_finding(finding: FindingSeen | None, wanted: GpuFilter) -> bool:
    severity = NONE if finding is None else finding.severity
    if wanted.faults and severity not in FAULTS:
        return False
    return not wanted.severity or wanted.severity == severity


def _allocated_to(roster: Roster, namespace: str, nodes: set[int], *, now: datetime) -> set[int]:
    """Returns the keys of GPUs known to be allocated to a pod of this namespace."""
    pods = Pod.objects.filter(namespace=namespace).tenants().not_done()
    there = sorted(nodes & set(pods.order_by().values_list("node", flat=True).distinct()))
    if len(there) > MOST_NODES:
        raise TooWide(
            f"Pods of {namespace} are on {len(there)} of these nodes. Quarterdeck assigns pods to GPUs on at "
            f"most {MOST_NODES} nodes: add a filter by cluster or pool."
        )
    allocated = allocations_on(
        list(Node.objects.filter(pk__in=there).defer("labels", "annotations", "taints")), now=now
    )
    named = {
        (key, board.index)
        for key, each in allocated.items()
        for board in each.boards
        if any(allocation.pod.namespace == namespace for allocation in board.allocations)
    }
    return {roster.keys[at] for at in range(len(roster.keys)) if (roster.node_of[at], roster.index[at]) in named}
