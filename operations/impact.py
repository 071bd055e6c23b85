"""The impact of an operation before it starts: its nodes, the pods on them, and what stands in its way."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet.freshness.cluster import load_cluster_freshness
from fleet.freshness.kinds import NODES, PODS, Freshness, never_listed
from fleet.models import Cluster, DisruptionBudget, Node, OtherPod, Pod
from kube.resources import DISRUPTION_BUDGETS
from kube.selectors import readable
from operations.domain_shares import domains_of
from operations.external_owner import announced_work_of, external_owners, not_looked_at
from operations.headroom import gpus_by_product, pending_after
from operations.kinds import LEAVING_STEPS, RETURNING_STEPS
from operations.ledger.disruptions import read_budgets, services_only_on
from operations.ledger.services import services_of
from operations.lifecycle import AT_ONCE_MOST
from operations.models import Disruption, Quarantine
from operations.pool_shares import shares_of, taken_by
from operations.restraints import freezes_of, reasons_of, stop_reason
from operations.steps import STEPS
from operations.steps.evictions import Consent, Evictions, PodOnNode, evictions_of
from operations.steps.whole_jobs import side_by_side
from operations.tenants.disruption_cost import Job, costs
from operations.tenants.jobs import harm_of
from wording.lists import names
from wording.numbers import are, count, either

TYPED_ABOVE = 10  # nodes; of more the asker types their number
LISTS = (
    "jobs", "services", "pools", "domains", "losses", "unmanaged", "empty_dir", "budgets", "vetoes", "waits",
    "warnings", "approvals", "products", "pending",
)  # fmt: skip
UNKNOWN = "What the pod loses is unknown: it is not named, has no GPUs, or is gone."
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


@dataclass(frozen=True)
class OperationImpact:
    """Rows of one moment. `warnings` do not bar the start; each names its remedy."""

    nodes: Sequence[Node]
    steps: Sequence[str]
    gpus: int | None  # None: unknown of some node
    gpu_pods: int  # that a drain evicts
    other_pods: int  # upper bound of evicted pods without GPUs; includes DaemonSets' pods
    jobs: Sequence[str]  # that end as a whole, with GPUs and nodes
    cost: str  # of the work that tenants lose; blank: none
    services: Sequence[str]  # with a Ready replica on these nodes and few elsewhere, the worst first
    pools: Sequence[str]  # nodes in service before and after
    domains: Sequence[str]  # the same of zones, racks and NVLink domains
    unmanaged: Sequence[str]  # pods that nothing starts again
    empty_dir: Sequence[str]  # pods that lose data
    budgets: Sequence[str]  # budgets that allow no eviction now
    waits: Sequence[str] = field(default_factory=list)  # why nodes wait after the start
    vetoes: Sequence[str] = field(default_factory=list)  # why nodes may not be released: they bar the start
    warnings: Sequence[str] = field(default_factory=list)
    approvals: Sequence[str] = field(default_factory=list)  # why another person has to approve it
    needs_typed_count: bool = False
    products: Sequence[str] = field(default_factory=list)  # GPUs by product
    headroom: str = ""  # room for the evicted pods elsewhere; blank: none needs any
    pending: Sequence[str] = field(default_factory=list)  # evicted pods that find no room
    duration: str = ""  # of past drains; blank: no drain
    why_unknown: str = ""  # why the losses are unknown; blank: they are known
    in_order: Sequence[Node] = field(default_factory=list)  # the order in which nodes begin

    @property
    def evicts(self) -> bool:
        return evicts(self.steps)

    @property
    def sentence(self) -> str:
        """Returns the impact in one line."""
        gpus = "GPUs unknown" if self.gpus is None else count(self.gpus, "GPU")
        what = f"{count(len(self.nodes), 'node')}, {gpus}"
        if not self.evicts:
            return f"{what}. {STEPS[self.steps[-1]].effect_on(self.nodes)}"
        others = f", at most {count(self.other_pods, 'other pod')}" if self.other_pods else ""
        worst = f" {self.services[0]}" if self.services else ""
        return f"{what}, {count(self.gpu_pods, 'GPU pod')} evicted{others}.{worst} {self.cost}".strip()

    @property
    def losses(self) -> list[str]:
        """Returns effects that cannot be undone."""
        found = [self.why_unknown] if self.why_unknown else []
        if self.jobs:
            found.append(f"{count(len(self.jobs), 'job')} {either(len(self.jobs), 'ends', 'end')} completely.")
        if self.unmanaged:
            found.append(f"{count(len(self.unmanaged), 'pod')} without a controller will not start again.")
        if self.empty_dir:
            found.append(f"{count(len(self.empty_dir), 'pod')} with emptyDir data, which is lost.")
        return found

    @property
    def as_kept(self) -> dict[str, Any]:
        """Returns what is stored with the operation."""
        return {
            "sentence": self.sentence, "nodes": len(self.nodes), "gpus": self.gpus, "gpu_pods": self.gpu_pods,
            "other_pods": self.other_pods, "cost": self.cost, "needs_typed_count": self.needs_typed_count,
            "headroom": self.headroom, "duration": self.duration,
        } | {name: list(getattr(self, name))[:100] for name in LISTS}  # fmt: skip


def impact_of(
    cluster: Cluster,
    nodes: Sequence[Node],
    steps: Sequence[str],
    *,
    actor: str,
    now: datetime,
    options: Mapping[str, Any] | None = None,
) -> OperationImpact:
    """Returns the impact on these nodes of one cluster. At most 36 queries, whatever the number of nodes."""
    node_names = [node.name for node in nodes]
    is_evicting = evicts(steps)
    named = {pod for key in steps if (pod := STEPS[key].named_pod(options or {})) is not None}
    pods = _pods(cluster, node_names) if is_evicting or named else []
    if named:
        pods = [pod for pod in pods if pod.uid in named]
    evictions = evictions_of(pods, Consent(unmanaged=True, empty_dir=True), now=now)
    known = [node.physical_gpus for node in nodes]
    harms = harm_of(cluster.pk, nodes, now=now) if is_evicting else {}
    jobs = {job.name: job for harm in harms.values() for job in harm.jobs}
    jobs_on = {name: frozenset(job.name for job in harm.jobs) for name, harm in harms.items()}
    drained = Counter(name for its in jobs_on.values() for name in its)
    is_leaving = leaves_service(steps)
    headroom, pending = pending_after(cluster, nodes, _returning(evictions)) if is_evicting else ("", [])
    shares = shares_of(cluster, nodes, taken=taken_by(actor, cluster, now=now) if is_leaving else ())
    return OperationImpact(
        nodes=nodes,
        steps=steps,
        gpus=None if None in known else sum(number or 0 for number in known),
        gpu_pods=len(evictions.to_evict) if is_evicting else 0,
        other_pods=OtherPod.objects.filter(cluster=cluster, node_name__in=node_names).count() if is_evicting else 0,
        in_order=side_by_side(nodes, jobs_on) if is_evicting else nodes,
        jobs=[
            _whole(job, drained[job.name]) for job in sorted(jobs.values(), key=lambda job: (-job.gpu_hours, job.name))
        ],
        cost=costs(list(harms.values())),
        services=_services(cluster, node_names) if is_evicting else [],
        pools=[
            share.effect(leaves=is_leaving, returns=not RETURNING_STEPS.isdisjoint(steps))
            for share in shares
            if share.pool
        ],
        domains=domains_of(cluster, nodes) if is_leaving else [],
        unmanaged=[pod.title for pod in evictions.to_evict if not pod.owner_kind],
        empty_dir=[pod.title for pod in evictions.to_evict if pod.has_empty_dir],
        budgets=_budgets(cluster, evictions),
        vetoes=sorted(vetoes_of(nodes, steps).values()),
        waits=list(_waits(cluster, nodes, steps, now=now)),
        warnings=[
            *_unseen(cluster, with_pods=is_evicting or bool(named), now=now),
            *_warnings(nodes, steps, options or {}, now=now),
            *(_jobs_in_turns(drained, (options or {}).get("at_once") or AT_ONCE_MOST) if "drain" in steps else ()),
        ],
        approvals=[
            *(STEPS[key].needs_approval for key in steps if STEPS[key].needs_approval),
            *(share.why_approval for share in shares if share.why_approval and is_leaving),
        ],
        products=gpus_by_product(nodes),
        headroom=headroom,
        pending=pending,
        why_unknown=UNKNOWN if named and not pods else "",
        duration=" ".join(filter(None, (STEPS[key].duration(cluster, nodes, now=now) for key in steps))),
        needs_typed_count=not is_dry_run(steps)
        and (len(nodes) > TYPED_ABOVE or any(share.is_large for share in shares)),
    )


def why_a_person_decides(node: Node, *, now: datetime) -> str:
    """Returns why no machine takes a node out of service: it is the last of a service, or its pods find no room.

    Blank: a machine may (lifecycle R51). At most 13 queries.
    """
    decides = "A person decides."
    if services := services_only_on(node.cluster_id, node.name):
        return f"{node.name} is the only node where {names(services)} {are(len(services))} Ready. {decides}"
    evictions = evictions_of(_pods(node.cluster, [node.name]), Consent(unmanaged=True, empty_dir=True), now=now)
    room, pending = pending_after(node.cluster, [node], _returning(evictions))
    if pending:
        find = either(len(pending), "finds", "find")
        return f"{count(len(pending), 'pod')} of {node.name} {find} no room: {names(pending)}. {room} {decides}"
    return ""


def _returning(evictions: Evictions) -> list[str]:
    """Returns the UIDs of the pods that a controller makes again."""
    return [pod.uid for pod in evictions.to_evict if pod.owner_kind]


def _whole(job: Job, drained: int) -> str:
    others = job.nodes - drained
    return f"{job}, {count(others, 'node')} of them not chosen" if others > 0 else str(job)


def _jobs_in_turns(drained: Mapping[str, int], at_once: int) -> Iterator[str]:
    """Yields the jobs on more of the nodes than begin at once."""
    for name, number in sorted(drained.items()):
        if number > at_once:
            yield (
                f"{name} runs on {number} of these nodes. With fewer “Nodes at once” it may start again on the others "
                "and end twice."
            )


def is_dry_run(steps: Sequence[str]) -> bool:
    return all(STEPS[key].is_dry_run for key in steps)


def evicts(steps: Sequence[str]) -> bool:
    return any(STEPS[key].evicts for key in steps)


def leaves_service(steps: Sequence[str]) -> bool:
    return any(key in LEAVING_STEPS for key in steps)


def _services(cluster: Cluster, node_names: Collection[str]) -> list[str]:
    """Returns the services that lose most of their Ready nodes, the worst first."""
    asked = set(node_names)
    found = []
    for allowance, hosts in services_of(cluster.pk, (), node_names).values():
        left = len(hosts - asked)
        if left < len(hosts) / 2:
            found.append((left, f"{allowance.words} is Ready on {count(len(hosts), 'node')}, {left} without these."))
    return [sentence for _, sentence in sorted(found)]


def _pods(cluster: Cluster, node_names: Collection[str]) -> list[PodOnNode]:
    """Returns the pods with rows on these nodes: tenants' GPU pods, and pods of the GPU stack."""
    rows = Pod.objects.filter(cluster=cluster, node_name__in=node_names).order_by("namespace", "name")
    return [
        PodOnNode(
            uid=row.uid, namespace=row.namespace, name=row.name, owner_kind=row.owner_kind, owner=row.owner_name,
            phase=row.phase, has_empty_dir=row.has_empty_dir, ends_at=row.deleted_at,
        )
        for row in rows
    ]  # fmt: skip


def _budgets(cluster: Cluster, evictions: Evictions) -> list[str]:
    """Returns the budgets that allow fewer evictions now than they cover pods that would be evicted.

    A budget whose status is unknown is left out.
    """
    namespaces = {pod.namespace for pod in evictions.to_evict}
    rows = list(DisruptionBudget.objects.filter(cluster=cluster, namespace__in=namespaces))
    if not rows:
        return []
    uids = [pod.uid for pod in evictions.to_evict]
    labels: dict[str, list[tuple[str, dict[str, str]]]] = defaultdict(list)
    pods = Pod.objects.filter(cluster=cluster, uid__in=uids, namespace__in={budget.namespace for budget in rows})
    for namespace, name, its in pods.order_by("name").values_list("namespace", "name", "labels"):
        labels[namespace].append((name, its))
    found: list[tuple[int, str, str]] = []
    for budget in rows:
        selector, allowed = readable(budget.selector), budget.disruptions_allowed
        covered = [name for name, its in labels[budget.namespace] if selector is not None and selector.matches(its)]
        if allowed is None or len(covered) <= allowed:
            continue
        title = f"{budget.namespace}/{budget.name}"
        most = f"{allowed} of {count(len(covered), 'eviction')}" if allowed else "no eviction"
        healthy = f"{budget.current_healthy} healthy, {budget.desired_healthy} needed"
        found.append((allowed, title, f"{title} allows {most} now: {healthy}. It covers {names(covered)}."))
    return [sentence for *_, sentence in sorted(found)]


def vetoes_of(nodes: Sequence[Node], steps: Sequence[str]) -> dict[str, str]:
    """Returns why nodes may not be changed so, by node UID."""
    if vetoes := [veto for key in steps for veto in STEPS[key].vetoes]:
        return reasons_of(vetoes, [node.uid for node in nodes])
    if not leaves_service(steps):
        return {}
    roles = {node.uid: next((label for label in CONTROL_PLANE if label in node.labels), "") for node in nodes}
    why = "is a control-plane node. Quarterdeck neither quarantines nor drains it: use kubectl."
    return {node.uid: f"{node.name} {why}" for node in nodes if roles[node.uid]}


def _waits(cluster: Cluster, nodes: Sequence[Node], steps: Sequence[str], *, now: datetime):
    """Yields why nodes would wait after the start."""
    uids = {node.uid: node.name for node in nodes}
    needs_place = any(STEPS[key].needs_place for key in steps)
    if any(STEPS[key].waits_for_stop for key in steps) and (stopped := stop_reason(now=now)):
        yield stopped
    if any(STEPS[key].waits_for_freeze for key in steps):
        yield from sorted(set(freezes_of(cluster.pk, list(uids), now=now).values()))
    taken = Disruption.objects.in_force().filter(node_uid__in=list(uids)).order_by("pk")
    kept = dict(Quarantine.objects.of_nodes(list(uids)).values_list("node_uid", "operation__pk"))
    others = [one for one in taken if one.node_uid not in kept]
    yield from (one.not_free for one in others)
    if needs_place:
        asked = [name for uid, name in uids.items() if uid not in kept]
        full = read_budgets(cluster.pk, asked, is_rollback=False).why_not(asked) if asked else ""
        if full:
            yield f"Waves: {full} The other nodes wait."


def _unseen(cluster: Cluster, *, with_pods: bool, now: datetime):
    """Yields parts of the impact that come from old rows. An empty list of pods or budgets may be missing data."""
    by_kind = load_cluster_freshness(cluster, now=now).by_kind
    for kind in (NODES, PODS, DISRUPTION_BUDGETS.name) if with_pods else (NODES,):
        found = by_kind.get(kind) or never_listed(kind)
        if found.state not in {Freshness.LIVE, Freshness.ABSENT}:
            yield f"The impact may differ: {found.sentence}"


def _warnings(nodes: Sequence[Node], steps: Sequence[str], options: Mapping[str, Any], *, now: datetime):
    if all(STEPS[key].minds_owner for key in steps):
        acts_on = {STEPS[key].acts_on for key in steps}
        held = {uid: owner for uid, owner in external_owners(nodes, now=now).items() if owner.name not in acts_on}
        yield from (f"{node.name} is held by another: {held[node.uid].sentence}" for node in nodes if node.uid in held)
        yield from not_looked_at(nodes, now=now)
        yield from (f"{node.name}: {work}" for node in nodes for work in announced_work_of(node))
    for key in steps:
        yield from STEPS[key].warnings(nodes)
        yield from STEPS[key].warnings_by_options(options, nodes)
