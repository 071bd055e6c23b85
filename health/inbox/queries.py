"""The context of a finding for pages and REST: its impact, events around its start, and acts."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Count, Q

from fleet.allocation.allocations import NodeAllocations
from fleet.allocation.gpu_holders import allocations_on
from fleet.freshness.kinds import PODS
from fleet.models import Bookmark, Cluster, DomainEvent, GoneNode, Node, NodeEvent, Pod, Pool
from fleet.queries import seen_pools_of
from gpu.resources import Layout, whole_gpus
from health.evaluation.finding_sources import SOURCES
from health.evaluation.signals import AnyRule
from health.impact import AllocatedPod, Impact, impact_of
from health.inbox.last_seen import LastSeen, unconfirmed_findings
from health.inbox.shared_properties import shared_properties
from health.models import Finding, FindingAct, Mute
from health.models.finding import FindingQuerySet
from health.models.mute import pools_of
from health.rules import RULES
from health.rules.gpus import GPU_RULES
from health.suspects import Suspects
from people.models import User
from wording.durations import spell

AROUND = timedelta(minutes=30)
POD_COLUMNS = ("namespace", "name", "owner_kind", "owner_name", "resources", "node__layout")
MOST_AROUND = 40
MOST_ALIKE = 8
OF_A_NODE = re.compile(r"(?:node|GPU .+ of) ([^ ,]+)(?:,|$)")  # how a subject names it


@dataclass(frozen=True)
class FindingCounts:
    """Counts of unresolved findings. Findings listed under another finding are not counted."""

    open: int = 0
    acknowledged: int = 0
    confirming: int = 0
    muted: int = 0
    mine: int = 0

    @property
    def unresolved(self) -> int:
        return self.open + self.acknowledged + self.confirming + self.muted


@dataclass(frozen=True)
class Precision:
    """The number of times that people accepted or dismissed a rule's recommended actions."""

    accepted: int
    dismissed: int


@dataclass(frozen=True)
class Detail:
    finding: Finding
    rule_title: str  # of its rule
    impact: Impact | None  # None: it is about no node
    pools: Sequence[str]
    children: Sequence[Finding]  # findings listed under it; for a resolved finding, those listed while it was open
    elsewhere: int  # visible open findings of the same rule
    code: str  # distinguishes findings of one rule: "Xid 79", a condition's type; blank: none
    alike: Sequence[Finding]  # the newest of `elsewhere` of the same code; where there is none, of the same rule
    alike_left_out: int
    alike_listed: int  # further open findings of the rule, listed under their causes
    shared: Suspects | None  # properties that nodes with it share; None: too few nodes have it, or lack it
    driver_change: NodeEvent | None  # the last one on its node
    around: Sequence[NodeEvent]  # events on its node within half an hour of its start, nearest first
    around_left_out: int  # and how much more did
    acts: Sequence[FindingAct]
    mutes: Sequence[Mute]  # mutes of the finding, without those of pools that this person does not see:
    mutes_unseen: int
    precision: Precision
    last_seen: LastSeen | None  # None: it is seen now whether it is still so, or it is over

    @property
    def driver_changed(self) -> str:
        """Returns the last driver change relative to the start, such as "5 min before its start"; empty if none is
        known."""
        if self.driver_change is None:
            return ""
        ago = self.finding.since - self.driver_change.at
        return f"{spell(abs(ago))} {'before' if ago >= timedelta(0) else 'after'} its start"


def counts_of(user: User, *, cluster: Cluster | None = None, pool: Pool | None = None) -> FindingCounts:
    """Returns the counts of all that the user sees, or of one cluster or pool, with one query."""
    own = Finding.objects.without_visible_cause(user).notified().unresolved()
    if cluster is not None:
        own = own.filter(cluster=cluster)
    if pool is not None:
        own = own.of_pool(pool)
    mine = Count("pk", filter=Q(assigned_to=user.get_username()))
    rows = list(own.order_by().values_list("state").annotate(Count("pk"), mine=mine))
    return FindingCounts(**{state: number for state, number, _ in rows}, mine=sum(mine for _, _, mine in rows))


def titles() -> Mapping[str, str]:
    """Returns the title of each rule, including rules of the apps above."""
    every: tuple[AnyRule, ...] = (*RULES, *GPU_RULES, *SOURCES.values())
    return {rule.key: rule.title for rule in every}


def impacts_of(findings: Collection[Finding], *, now: datetime) -> dict[int, Impact]:
    """Returns the impact by the finding's key, for findings about existing nodes.

    Two queries; if any finding is about a GPU, one more and those of `allocations_on`.
    """
    nodes = {finding.node_id for finding in findings if finding.node_id}
    if not nodes:
        return {}
    of_gpus = {finding.node_id for finding in findings if finding.node_id and finding.is_of_gpu}
    allocated = allocations_on(list(Node.objects.filter(pk__in=of_gpus)), now=now) if of_gpus else {}
    boards = _boards(allocated)
    unplaced = {one.pod.pk for node in allocated.values() for one in node.unplaced}
    clusters = {one.cluster_id for one in findings}
    marks = Bookmark.objects.filter(kind=PODS, listed_at__isnull=False, cluster__in=clusters)
    known = {mark.cluster_id: None if mark.is_fresh(now=now) else mark.last_seen_at for mark in marks}
    pods: dict[int, list[AllocatedPod]] = defaultdict(list)
    tenants = Pod.objects.filter(node__in=nodes).tenants().not_done().select_related("node")
    for pod in tenants.order_by("pk").only(*POD_COLUMNS):
        its = boards.get(pod.pk, frozenset())
        pods[pod.node_id or 0].append(_allocated_to(pod, its, has_unplaced=pod.pk in unplaced))
    return {
        finding.pk: replace(
            impact_of(
                pods.get(finding.node_id, ()), gpu=_gpu_of(finding, allocated), is_known=finding.cluster_id in known
            ),
            seen_until=known.get(finding.cluster_id),
        )
        for finding in findings
        if finding.node_id
    }


def detail_of(
    finding: Finding,
    user: User,
    *,
    impacts: Mapping[int, Impact] | None = None,
    last_seen_at: Mapping[int, datetime | None] | None = None,
    now: datetime,
) -> Detail:
    """Returns everything its page shows, with 35 queries at most. The finding needs its cluster and node loaded.

    `impacts` avoids reading them again; `last_seen_at` is that of `unconfirmed_findings`.
    """
    node = finding.node
    events = NodeEvent.objects.none()
    if node is not None:
        events = NodeEvent.objects.filter(cluster=finding.cluster_id, node_uid=node.uid)
    same = Finding.objects.without_visible_cause(user).open().filter(rule=finding.rule).exclude(pk=finding.pk)
    code, like_it = code_of(finding)
    alike = same.filter(like_it)
    shown = list(alike.select_related("cluster")[:MOST_ALIKE])
    number_alike = alike.count() if len(shown) == MOST_ALIKE else len(shown)
    every = Finding.objects.visible_to(user).open().filter(like_it, rule=finding.rule).exclude(pk=finding.pk)
    said = dict(
        FindingAct.objects.visible_to(user)
        .filter(rule=finding.rule, verb__in=("accept", "dismiss"))
        .order_by()
        .values_list("verb")
        .annotate(number=Count("pk"))
    )
    pools = {} if node is None else dict(seen_pools_of(node, user=user).values_list("pk", "name"))
    mutes = mutes_of(finding, now=now)
    seen_mutes = [mute for mute in mutes if mute.pool_id is None or mute.pool_id in pools]
    around, around_left_out = _nearest_events(node, finding.since) if node is not None else ([], 0)
    return Detail(
        finding=finding,
        rule_title=titles().get(finding.rule, finding.rule),
        impact=(impacts_of([finding], now=now) if impacts is None else impacts).get(finding.pk),
        pools=list(pools.values()),
        children=list(_listed_under(finding).order_by("since", "pk")),
        elsewhere=same.count() if code else number_alike,
        code=code,
        alike=shown,
        alike_left_out=number_alike - len(shown),
        alike_listed=max(0, every.count() - number_alike),
        shared=shared_properties(finding, user, like_it),
        driver_change=events.driver_changes().order_by("-at", "-pk").first(),
        around=around,
        around_left_out=around_left_out,
        acts=list(finding.acts.order_by("-at", "-pk")[:MOST_AROUND]),
        mutes=seen_mutes,
        mutes_unseen=len(mutes) - len(seen_mutes),
        precision=Precision(said.get("accept", 0), said.get("dismiss", 0)),
        last_seen=unconfirmed_findings([finding], last_seen_at=last_seen_at, now=now).get(finding.pk),
    )


def _listed_under(finding: Finding) -> FindingQuerySet:
    """Returns the findings listed under this one. Those resolved before this one began are left out."""
    if finding.resolved_at is None:
        return finding.children.unresolved()
    return finding.children.filter(resolved_at__gte=finding.since)


def _nearest_events(node: Node, at: datetime) -> tuple[list[NodeEvent], int]:
    """Returns the events nearest to that moment in time order, and the number of further events.

    Domain events have the kind of their subject, and its facts. Two queries; eight if there are many.
    """
    within = {"cluster": node.cluster_id, "node_uid": node.uid, "at__gte": at - AROUND, "at__lte": at + AROUND}
    there = (NodeEvent.objects.filter(**within).order_by("at", "pk"),
             DomainEvent.objects.filter(**within).order_by("at", "pk"))  # fmt: skip
    found = [event for rows in there for event in rows[: MOST_AROUND + 1]]
    left_out = 0
    if len(found) > MOST_AROUND:
        sides = [(rows.filter(at__lt=at).reverse(), rows.filter(at__gte=at)) for rows in there]
        nearby = [event for both in sides for rows in both for event in rows[:MOST_AROUND]]
        found = sorted(nearby, key=lambda event: abs(event.at - at))[:MOST_AROUND]
        left_out = sum(rows.count() for rows in there) - MOST_AROUND
    return [_as_line(event) for event in sorted(found, key=lambda event: (event.at, event.pk))], left_out


def _as_line(event: NodeEvent | DomainEvent) -> NodeEvent:
    if isinstance(event, NodeEvent):
        return event
    told = {"at": event.at, "kind": event.family, "sentence": event.sentence, "detail": event.facts}
    return NodeEvent(pk=event.pk, cluster_id=event.cluster_id, node_uid=event.node_uid, **told)


def as_seen_by(user: User, findings: Collection[Finding]) -> None:
    """Detaches findings whose cause the user may not see, with two queries where any has a cause."""
    listed = {finding.parent_id for finding in findings if finding.parent_id}
    if not listed:
        return
    seen = set(Finding.objects.visible_to(user).filter(pk__in=listed).values_list("pk", flat=True))
    for finding in findings:
        if finding.parent_id not in seen:
            finding.parent = None


# Rules whose findings differ by their facts; the facts of other findings are not loaded.
CODED = frozenset({"gpu-xid", "node-conditions", "operand-down"})


def code_of(finding: Finding) -> tuple[str, Q]:
    """Returns the code that distinguishes findings of the rule, and a filter for the same code elsewhere; empty if
    there is none."""
    if finding.rule == "gpu-xid" and (xid := finding.xid) is not None:
        return f"Xid {xid}", Q(facts__xid=xid)
    if finding.rule == "node-conditions" and finding.facts:
        types = sorted(finding.facts)
        return " or ".join(types), Q(facts__has_any_keys=types)
    if finding.rule == "operand-down" and (operands := finding.facts.get("operands")):
        return " and ".join(operands), Q(facts__operands=operands)
    return "", Q()


def gone_node_of(finding: Finding, user: User) -> GoneNode | None:
    """Returns the departed node of the finding, with one query at most; None if the node exists or there is none."""
    named = OF_A_NODE.match(finding.subject) if finding.node_id is None else None
    if named is None:
        return None
    gone = GoneNode.objects.visible_to(user).filter(cluster=finding.cluster_id, name=named[1])
    return gone.filter(gone_at__gte=finding.since).order_by("gone_at").first()


def mutes_of(finding: Finding, *, now: datetime) -> list[Mute]:
    """Returns the mutes in force for the finding, with one query, or two for mutes of a pool."""
    return mutes_of_each([finding], now=now)[finding.pk]


def mutes_of_each(findings: Collection[Finding], *, now: datetime) -> Mapping[int, list[Mute]]:
    """Returns the same by finding, with as many queries. The findings need their nodes."""
    places = {"cluster__in": {each.cluster_id for each in findings}, "rule__in": {each.rule for each in findings}}
    mutes = list(Mute.objects.in_force(now=now).filter(**places).select_related("cluster", "pool", "node"))
    pools = pools_of(mutes)
    return {
        each.pk: [
            mute
            for mute in mutes
            if mute.covers(each, each.node.name if each.node else "", pools.get(each.node_id or 0, ()))
        ]
        for each in findings
    }


def _gpu_of(finding: Finding, allocated: Mapping[int, NodeAllocations]) -> int | str | None:
    """Returns the GPU as `_boards` identifies it, or its UUID if unknown there; None if the finding has no GPU."""
    there = allocated.get(finding.node_id or 0)
    if there is None or not finding.is_of_gpu:
        return None
    index = finding.gpu_among({board.index: board.uuid for board in there.boards if board.index is not None})
    return finding.gpu_uuid if index is None else index


def _boards(found: Mapping[int, NodeAllocations]) -> dict[int, frozenset[int | str]]:
    """Returns the known GPUs of each pod, by the pod's key: by their numbers, else by their UUIDs."""
    boards: dict[int, frozenset[int | str]] = {}
    for allocated in found.values():
        for board in allocated.boards:
            key = board.uuid if board.index is None else board.index
            for allocation in board.allocations:
                boards[allocation.pod.pk] = boards.get(allocation.pod.pk, frozenset()) | {key}
    return boards


def _allocated_to(pod: Pod, boards: frozenset[int | str], *, has_unplaced: bool) -> AllocatedPod:
    return AllocatedPod(
        namespace=pod.namespace,
        name=pod.name,
        owner=f"{pod.owner_kind}/{pod.owner_name}" if pod.owner_name else "",
        gpus=whole_gpus(pod.resources, Layout.read(pod.node.layout)) if pod.node else 0,
        boards=boards,
        has_unplaced=has_unplaced,
    )
