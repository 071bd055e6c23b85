"""Every GPU that a person sees, narrowed down and put in order, without an object for any of them.

What exporters say are columns of frames. Only who is shown is read whole (`reading.py`).
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from heapq import nlargest, nsmallest
from itertools import chain
from typing import Any

from fleet.allocation.holders import held_on
from fleet.models import Cluster, Node, Pod, Pool
from fleet.models.node import members_of
from fleet.states.node import STATE_KEYS
from gpu.versions import read
from health.correlation import OF_A_GPU
from health.gpus.asking import NONE, GpuFilter
from health.gpus.remembered import COLUMNS, ClusterGpus, SeenNode, gpus_of
from health.models import Finding
from health.rules.base import RANKS, Severity
from health.sources.of_clusters import ClusterTelemetry, telemetry_of_clusters
from health.sources.reading import AHEAD_S, UTILISATION
from health.telemetry.base import FORGET_AFTER_S, STALE_AFTER_S
from health.telemetry.frame import NEVER
from people.models import User
from people.rights import Permission, scope_of

READ = (
    *UTILISATION,
    "memory_used_mib",
    "memory_free_mib",
    "temperature_celsius",
    "power_watts",
    "power_limit_watts",
    "xid",
)
ORDERED_BY: Mapping[str, tuple[str, ...]] = {  # by the key of a column: the metrics, the first that a board has
    "temperature": ("temperature_celsius",),
    "utilisation": UTILISATION,
    "memory": ("memory_used_mib",),
    "power": ("power_watts",),
    "xid": ("xid",),
}
FEW = 8  # a part of a list that is as small is put in order without the rest
MOST_NODES = 1000  # of which it is found out who holds what, to find the GPUs of a namespace
WELL = len(Severity)  # the rank of a GPU without a finding
FAULTS = frozenset({Severity.CRITICAL.value, Severity.WARNING.value})


class TooWide(Exception):
    """More would have to be read for this filter than one question is worth."""


@dataclass(frozen=True)
class FindingSeen:
    key: int
    rule: str
    severity: str
    sentence: str
    is_of_node: bool

    @property
    def rank(self) -> int:
        return RANKS.get(self.severity, WELL)


OF_NODE: Mapping[str, Callable[[SeenNode], Any]] = {  # by the key of a column; what is empty is not known
    "node": lambda node: node.name,
    "product": lambda node: node.product,
    "driver": lambda node: read(node.driver).numbers,
}


@dataclass
class Findings:
    """The worst that is open of each GPU, and of each node as a whole."""

    of_gpu: dict[tuple[int, str], FindingSeen] = field(default_factory=dict)  # by node, and index or UUID
    of_node: dict[int, FindingSeen] = field(default_factory=dict)

    @cached_property
    def nodes(self) -> frozenset[int]:
        """Those on which there is any: most have none, and their GPUs need no look."""
        return frozenset(self.of_node) | {node for node, _ in self.of_gpu}

    def add(self, node: int, subject: str, seen: FindingSeen) -> None:
        if seen.is_of_node:
            self.of_node[node] = _worse(self.of_node.get(node), seen)
        else:
            key = node, subject.removeprefix(OF_A_GPU).partition(" of ")[0]
            self.of_gpu[key] = _worse(self.of_gpu.get(key), seen)

    def of(self, node: int, index: int, uuid: str) -> FindingSeen | None:
        """Its own before its node's, where both are as bad."""
        own = self.of_gpu.get((node, str(index))) or self.of_gpu.get((node, uuid))
        whole = self.of_node.get(node)
        return _worse(own, whole) if own and whole else own or whole


def _worse(known: FindingSeen | None, other: FindingSeen) -> FindingSeen:
    return other if known is None or other.rank < known.rank else known


@dataclass
class Roster:
    """GPUs in columns, by cluster, node and index; `order`: the places of those that are wanted, in their order."""

    total: int  # that the person sees, wanted or not
    parts: Sequence[tuple[int, ClusterGpus]]  # by cluster; their columns follow one another
    nodes: Mapping[int, SeenNode]
    keys: Sequence[int]
    node_of: Sequence[int]
    index: Sequence[int]
    uuid: Sequence[str]
    product: Sequence[str]
    findings: Findings
    telemetry: Mapping[int, ClusterTelemetry]
    matching: int = 0  # that are wanted
    order: Sequence[int] = ()

    def board(self, at: int) -> int | None:
        """Its place among the boards of its cluster's frame. None: the frame does not have it."""
        node = self.nodes[self.node_of[at]]
        return self.telemetry[node.cluster_id].boards.find(node.name, self.uuid[at], self.index[at])

    def finding(self, at: int) -> FindingSeen | None:
        node = self.node_of[at]
        return self.findings.of(node, self.index[at], self.uuid_of(at)) if node in self.findings.nodes else None

    def uuid_of(self, at: int) -> str:
        """What its row has, else what its exporter says. Blank: nothing has named it."""
        if self.uuid[at]:
            return self.uuid[at]
        board = self.board(at)
        return "" if board is None else self.telemetry_of(at).boards.every[board].uuid

    def telemetry_of(self, at: int) -> ClusterTelemetry:
        return self.telemetry[self.nodes[self.node_of[at]].cluster_id]

    def of_boards(self, column: Callable[[ClusterTelemetry], Sequence[float]]) -> list[float]:
        """Of each GPU what its board has in this column. NaN: no frame has it."""
        found: list[float] = []
        for cluster, gpus in self.parts:
            telemetry = self.telemetry[cluster]
            said = [*column(telemetry), NEVER]  # the last for whom the frame does not have
            found += [said[place] for place in gpus.places(telemetry)]
        return found


def read_roster(user: User, wanted: GpuFilter, *, now: datetime, stop: int | None = None) -> Roster:
    """Nine queries at most, and what `held_on` costs where a namespace is wanted. `stop`: only the first so many are
    put in order.

    :raises TooWide: with the sentence
    """
    scope = scope_of(user, Permission.SEE)
    clusters = dict(Cluster.objects.visible_to(user).order_by("name").values_list("pk", "name"))
    parts = list(gpus_of(clusters).items())
    columns: dict[str, Any] = {
        name: list(chain.from_iterable(getattr(gpus, name) for _, gpus in parts)) for name in COLUMNS
    }
    roster = Roster(
        total=0,
        parts=parts,
        nodes={pk: node for _, gpus in parts for pk, node in gpus.nodes.items()},
        findings=_findings(user),
        telemetry=telemetry_of_clusters(clusters, READ, now=now),
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
    picked = _picked(roster, found, wanted, now=now)
    roster.matching = len(picked)
    roster.order = _ordered(roster, picked, wanted, now=now.timestamp(), stop=stop)
    return roster


def _nodes(user: User, wanted: GpuFilter) -> set[int] | None:
    """None: whatever their node is."""
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


def _findings(user: User) -> Findings:
    found = Findings()
    rows = Finding.objects.visible_to(user).open().of_nodes_own().order_by("-pk")
    for row in rows.only("pk", "node_id", "subject", "rule", "severity", "sentence"):
        is_of_node = not row.subject.startswith(OF_A_GPU)
        seen = FindingSeen(row.pk, row.rule, row.severity, row.sentence, is_of_node)
        found.add(row.node_id or 0, row.subject, seen)
    return found


def _picked(roster: Roster, those: Collection[int], wanted: GpuFilter, *, now: datetime) -> Collection[int]:
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
        held = _held_by(roster, wanted.namespace, {roster.node_of[at] for at in found}, now=now)
        found = [at for at in found if roster.keys[at] in held]
    return found


def _has_finding(finding: FindingSeen | None, wanted: GpuFilter) -> bool:
    severity = NONE if finding is None else finding.severity
    if wanted.faults and severity not in FAULTS:
        return False
    return not wanted.severity or wanted.severity == severity


def _held_by(roster: Roster, namespace: str, nodes: set[int], *, now: datetime) -> set[int]:
    """The keys of GPUs that a pod of this namespace is known to hold."""
    pods = Pod.objects.filter(namespace=namespace).tenants().not_done()
    there = sorted(nodes & set(pods.order_by().values_list("node", flat=True).distinct()))
    if len(there) > MOST_NODES:
        raise TooWide(
            f"Pods of {namespace} are on {len(there)} of these nodes, and who holds which GPU is looked up for at most "
            f"{MOST_NODES}: choose a cluster or a pool, too."
        )
    held = held_on(list(Node.objects.filter(pk__in=there).defer("labels", "annotations", "taints")), now=now)
    named = {
        (key, board.index)
        for key, each in held.items()
        for board in each.boards
        if any(holder.pod.namespace == namespace for holder in board.holders)
    }
    return {roster.keys[at] for at in range(len(roster.keys)) if (roster.node_of[at], roster.index[at]) in named}


def _ordered(
    roster: Roster, picked: Collection[int], wanted: GpuFilter, *, now: float, stop: int | None
) -> Sequence[int]:
    """Ties stand in the order of the roster. Whom nothing is known of comes last, whichever way it is sorted."""
    key, is_descending = wanted.order_key, wanted.is_descending
    if key == "health":
        # The worst is above where it descends.
        ranks = [WELL if (found := roster.finding(at)) is None else found.rank for at in range(len(roster.keys))]
        return _first(stop, picked, ranks.__getitem__, is_descending=not is_descending)
    if key in OF_NODE:
        of = {pk: OF_NODE[key](node) for pk, node in roster.nodes.items()}
        known = [at for at in picked if of[roster.node_of[at]]]
        unknown = [at for at in picked if not of[roster.node_of[at]]]
        return [*_first(stop, known, lambda at: of[roster.node_of[at]], is_descending=is_descending), *unknown]
    return _by_metric(roster, picked, key, now=now, is_descending=is_descending, stop=stop)


def _first(stop: int | None, those: Collection[int], key: Callable[[int], Any], *, is_descending: bool) -> list[int]:
    """In order as far as that, or all of them. Not the others: whoever asks for a page goes no further."""
    if stop is None or stop * FEW > len(those):
        return sorted(those, key=key, reverse=is_descending)
    return (nlargest if is_descending else nsmallest)(stop, those, key=key)


def _by_metric(
    roster: Roster, picked: Collection[int], key: str, *, now: float, is_descending: bool, stop: int | None
) -> list[int]:
    """What is of now stands before what was said before, and that before what nobody said."""
    columns = {cluster: _column(telemetry, key, now=now) for cluster, telemetry in roster.telemetry.items()}
    values = roster.of_boards(lambda telemetry: columns[telemetry.cluster][0])
    is_fresh = roster.of_boards(lambda telemetry: columns[telemetry.cluster][1])
    known = [at for at in picked if values[at] == values[at]]
    fresh = [at for at in known if is_fresh[at]]
    kept = [at for at in known if not is_fresh[at]] if len(fresh) < len(known) else []
    none = [at for at in picked if values[at] != values[at]] if len(known) < len(picked) else []
    if stop is not None and stop <= len(fresh):
        kept = none = []
    return [
        *chain(*(_first(stop, some, values.__getitem__, is_descending=is_descending) for some in (fresh, kept))),
        *none,
    ]


def _column(telemetry: ClusterTelemetry, key: str, *, now: float) -> tuple[Sequence[float], Sequence[bool]]:
    """Of each board what it is sorted by, NaN where there is nothing; and whether it is of now: see `read_metric`."""
    oldest, newest = now - FORGET_AFTER_S, now + AHEAD_S
    least = math.inf if telemetry.standing.is_silent else now - STALE_AFTER_S
    if key == "sampled":
        times = telemetry.newest()
        return [at if oldest <= at <= newest else NEVER for at in times], [at >= least for at in times]
    found: Sequence[float] = ()
    is_fresh: Sequence[bool] = ()
    for metric in ORDERED_BY[key]:
        values, times = telemetry.values(metric), telemetry.times(metric)
        said = values if _is_whole(values, times, oldest, newest) else [
            value if oldest <= at <= newest and value - value == 0 else NEVER  # finite
            for value, at in zip(values, times, strict=True)
        ]  # fmt: skip
        is_new = [at >= least for at in times]
        if found:  # what the metric before did not say of a board, this one may
            is_fresh = [a if one == one else b for one, a, b in zip(found, is_fresh, is_new, strict=True)]
            found = [one if one == one else other for one, other in zip(found, said, strict=True)]
        else:
            found, is_fresh = said, is_new
    return found, is_fresh


def _is_whole(values: Sequence[float], times: Sequence[float], oldest: float, newest: float) -> bool:
    """Whether every board has a value that may be believed: said of all at once, since it mostly is so."""
    total = sum(values) + sum(times)
    return total - total == 0 and bool(times) and oldest <= min(times) and max(times) <= newest
