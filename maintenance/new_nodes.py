"""The facts that the gate of new nodes reads of a node, and the nodes that it holds back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet

from fleet.models import Cluster, ClusterMode, Node, Pod, PodPlacement
from gpu.cordons import sentinel_holds
from gpu.external_owners import ExternalOwner
from health.stack import ChecklistAnswer, ChecklistItem, checklist_of, read_stacks
from maintenance.automatic import AT_REST, why_not_now
from maintenance.gate_steps import GateFacts
from maintenance.models import NewNodeGate, NodeCase
from operations.external_owner import external_owners
from operations.models import Disruption, OperationNode, Quarantine
from operations.restraints import freezes_of
from operations.test_jobs.allocated_gpus import device_request_of, why_never_testable
from wording.durations import spell
from wording.lists import names

ACTOR = "new node gate"  # in cases, operations and the audit chain
JOINED_WITHIN = timedelta(hours=24)  # a driver takes minutes, and then the labels by which a pool selects
# Answers that may be unknown: the test workload uses the hardware, the driver and the runtime.
PROVEN_BY_TEST = frozenset({"hardware", "module", "runtime-class"})


def unheld_nodes(gate: NewNodeGate, *, most: int, now: datetime) -> list[tuple[Node, str]]:
    """Returns nodes that joined since the gate is on and that it never held, with the reason, the newest first.

    14 queries at most.
    """
    if gate.on_since is None:
        return []
    had = NodeCase.objects.filter(is_new=True).values("node_uid")
    rows = gate.pool.nodes.filter(is_gpu_node=True, created_at__gt=gate.on_since).exclude(uid__in=had)
    nodes = list(rows.order_by("-created_at", "name")[:most])
    uids = [node.uid for node in nodes]
    placements = PodPlacement.objects.filter(cluster=gate.pool.cluster_id, node_uid__in=uids)
    served = set(placements.values_list("node_uid", flat=True))
    cases = set(NodeCase.objects.open().filter(node_uid__in=uids).values_list("node_uid", flat=True))
    serving, not_free = tenants_of(nodes), why_not_free(nodes, now=now)
    waits = why_gate_waits(gate.pool.cluster, now=now) if nodes else ""

    def why(node: Node) -> str:
        if node.uid in cases:
            return "The node has an open case."
        if node.name in serving:
            return f"{serving[node.name][0]} runs there: the node serves already."
        if node.uid in served:
            return "A pod of a tenant had GPUs of the node: it served already."
        if node.created_at <= now - JOINED_WITHIN:
            return f"The node joined more than {spell(JOINED_WITHIN)} ago."
        if node.is_unschedulable:
            return "Somebody else cordoned the node."
        refusal = gate.refusal if gate.refused_node == node.name else ""
        return not_free.get(node.uid, "") or waits or refusal or "The next round decides."

    return [(node, why(node)) for node in nodes]


def joined_nodes(gate: NewNodeGate, *, now: datetime) -> QuerySet[Node]:
    """Returns the nodes of the pool that joined since the gate is on, never served, and had no case of it yet."""
    had = NodeCase.objects.filter(is_new=True).values("node_uid")
    since = max(gate.on_since or now, now - JOINED_WITHIN)
    rows = gate.pool.nodes.filter(is_gpu_node=True, created_at__gt=since, is_unschedulable=False)
    served = PodPlacement.objects.filter(cluster=gate.pool.cluster_id).values("node_uid")
    return rows.exclude(uid__in=had).exclude(uid__in=served).exclude(uid__in=NodeCase.objects.open().values("node_uid"))


def tenants_of(nodes: Sequence[Node]) -> Mapping[str, list[str]]:
    """Returns the pods of tenants that are bound to the nodes, by node name. One query."""
    found: dict[str, list[str]] = {}
    if nodes:
        here = Pod.objects.filter(cluster=nodes[0].cluster_id, node_name__in=[node.name for node in nodes])
        here = here.filter(deleted_at=None).tenants().order_by("namespace", "name")
        for node_name, namespace, name in here.values_list("node_name", "namespace", "name"):
            found.setdefault(node_name, []).append(f"{namespace}/{name}")
    return found


def why_gate_waits(cluster: Cluster, *, now: datetime) -> str:
    """Returns why no new node of a cluster is held, tested or released now. Blank: they are."""
    if cluster.mode != ClusterMode.OPERATE:
        return f"Quarterdeck may not change {cluster.name}: its mode is {cluster.mode}."
    return why_not_now(cluster, now=now)


def why_not_free(nodes: Sequence[Node], *, now: datetime) -> dict[str, str]:
    """Returns why no operation of the gate starts on nodes of one cluster, by UID. Five queries at most."""
    if not nodes:
        return {}
    uids = [node.uid for node in nodes]
    own = {row.node_uid: row.operation.mark for row in Quarantine.objects.of_nodes(uids).select_related("operation")}
    frozen = freezes_of(nodes[0].cluster_id, uids, now=now)
    taken = Disruption.objects.in_force().filter(node_uid__in=uids)
    others = {row.node_uid: row.not_free for row in taken if row.taken_by != own.get(row.node_uid)}
    works = external_owners(nodes, now=now)
    found = {
        node.uid: _owner_of(node, works.get(node.uid)) or others.get(node.uid, "") or frozen.get(node.uid, "")
        for node in nodes
    }
    return {uid: why for uid, why in found.items() if why}


def _owner_of(node: Node, external: ExternalOwner | None) -> str:
    """Returns who else works on the node. Blank: nobody."""
    if external:
        return external.sentence
    if sentinel_holds(node.labels, node.annotations):
        return "NVSentinel quarantines the node."
    if node.upgrade_state not in AT_REST or node.is_paused or node.reconfiguring:
        return "The node is being changed."
    return ""


def facts_of_gate(cases: Sequence[NodeCase], *, now: datetime) -> dict[int, GateFacts]:
    """Returns the facts of new nodes of one cluster by case. 19 queries."""
    uids = [case.node_uid for case in cases]
    nodes = {node.uid: node for node in Node.objects.filter(uid__in=uids).select_related("cluster")}
    if not nodes:
        return {}
    stacks, tenants = read_stacks(list(nodes.values()), now=now), tenants_of(list(nodes.values()))
    gates = NewNodeGate.objects.in_bulk({case.gate_id for case in cases if case.gate_id})
    peers = _gpus_of_peers(nodes.values())
    tests = OperationNode.objects.of_kinds("test").filter(node_uid__in=uids, operation__asked_by=ACTOR)
    started = list(tests.values_list("node_uid", "operation__asked_at"))
    served = PodPlacement.objects.filter(cluster=cases[0].cluster_id, node_uid__in=uids)
    has_served, not_free = set(served.values_list("node_uid", flat=True)), why_not_free(list(nodes.values()), now=now)
    found = {}
    for case in cases:
        if (node := nodes.get(case.node_uid)) is None:
            continue
        gate = gates.get(case.gate_id or 0)
        found[case.pk] = GateFacts(
            lacks=_lacks(node, checklist_of(node, stacks[node.pk]), peers.get(_kind_of(node), ())),
            unlabelled=_unlabelled(node, gate) if gate else "",
            tenants=tenants.get(node.name, ()),
            tests=sum(uid == node.uid and at >= case.opened_at for uid, at in started),
            needs_person=gate is not None and gate.needs_person,
            has_served=node.uid in has_served,
            has_gate=gate is not None,
            is_untestable=why_never_testable(node),
            is_not_free=not_free.get(node.uid, ""),
        )
    return found


def _kind_of(node: Node) -> tuple[str, str]:
    return node.gpu_product, node.instance_type


def _gpus_of_peers(nodes: Iterable[Node]) -> dict[tuple[str, str], set[int]]:
    """Returns the numbers of GPUs of other whole nodes of the same product and instance type. One query."""
    cluster = next(iter(nodes)).cluster_id
    rows = Node.objects.filter(cluster=cluster, gpu_product__in={node.gpu_product for node in nodes})
    rows = rows.filter(gpu_expected__gt=0, slices_expected=0, shares_expected=0)
    rows = rows.exclude(uid__in=[node.uid for node in nodes]).order_by()
    found: dict[tuple[str, str], set[int]] = {}
    for product, kind, number in rows.values_list("gpu_product", "instance_type", "gpu_expected").distinct():
        found.setdefault((product, kind), set()).add(number or 0)
    return found


def _lacks(node: Node, items: Sequence[ChecklistItem], peers: Collection[int]) -> str:
    """Returns the first reason why the checklist does not hold. Blank: it does."""
    if node.is_ready is not True:
        return "The node is not Ready."
    for item in items:
        is_open = item.answer is ChecklistAnswer.UNKNOWN and item.key not in PROVEN_BY_TEST
        if item.answer is ChecklistAnswer.NO or is_open:
            step = f" {item.steps[0]}" if item.steps else ""
            return f"{item.title}: {item.answer}. {item.sentence}{step}"
    if node.missing_in_words:
        return f"Missing: {node.missing_in_words}."
    is_cut = node.slices_expected or node.shares_expected  # what it offers of these is compared with its own layout
    offered = (node.physical_gpus if is_cut else node.gpu_allocatable) or 0
    # Without an instance type, nodes with fewer GPUs may be of another size.
    if peers and (offered < max(peers) if node.instance_type else offered not in peers):
        amounts = names([str(number) for number in sorted(peers)])
        return f"The node offers {offered} GPUs. Others with {node.gpu_product} offer {amounts}."
    return request if isinstance(request := device_request_of(node), str) else ""


def _unlabelled(node: Node, gate: NewNodeGate) -> str:
    """Returns the labels and taints that the node lacks, as a sentence. Blank: none."""
    lacking = [label for label in gate.labels if not _has_label(node, label)]
    taints = {
        f"{taint['key']}{separator}{taint.get('value') or ''}:{taint.get('effect', '')}"
        for taint in node.taints
        for separator in [("=" if taint.get("value") else "")]
    }
    missing = [taint for taint in gate.taints if taint not in taints]
    parts = [f"Labels that the pool wants: {names(lacking)}."] if lacking else []
    parts += [f"Taints that the pool wants: {names(missing)}."] if missing else []
    return " ".join(parts)


def _has_label(node: Node, wanted: str) -> bool:
    key, is_valued, value = wanted.partition("=")
    return key in node.labels and (not is_valued or node.labels[key] == value)
