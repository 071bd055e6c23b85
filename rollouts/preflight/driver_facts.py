"""Reads the facts about a driver object and its nodes from rows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, Q

from fleet.freshness.cluster import why_unseen
from fleet.models import DisruptionBudget, DriverObject, Node, Operand, Pod, ResourceClaim
from fleet.models.pod import PodQuerySet
from gpu.compatibility.ranges import is_older
from gpu.evictions import DRA_DRIVER, read_policy
from gpu.images import cuda_of
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from gpu.operands import DRA_DRIVER as DRA_PLUGIN
from gpu.operands import DRIVER
from kube.resources import DEPLOYMENTS, DISRUPTION_BUDGETS, RESOURCE_CLAIMS
from kube.selectors import readable
from rollouts.checks import MOST_NAMED
from rollouts.components.base import BEGUN
from rollouts.components.driver import DriverFacts
from rollouts.models import Plan
from rollouts.preflight.facts import (
    BudgetFacts,
    DaemonSetFacts,
    DraPluginFacts,
    NodeToChange,
    PodFacts,
    PreflightFacts,
)
from rollouts.queries.driver_nodes import cluster_policy, driver_daemonsets, newest_hashes, upgrade_policy
from rollouts.queries.operators import operator_down

ALWAYS = "AlwaysAllow"  # unhealthyPodEvictionPolicy

# An operand's pod that asks for no GPU: seven of ten pods of a GPU node, and no check asks anything of one.
OF_ITS_NODE = Q(owner_kind="DaemonSet", is_tenant=False, resources={}, claims=[]) & ~Q(operand__in=["", DRA_PLUGIN])

OF_A_POD = (  # only the columns that checks need: there may be tens of thousands of pods
    *("namespace", "name", "node_name", "owner_kind", "phase", "is_ready", "is_tenant", "operand", "has_empty_dir"),
    *("owner_name", "started_at", "ready_since", "restarts"),
    *("resources", "claims", "labels", "priority_class", "runtime_class", "visible_devices", "required_cuda", "image"),
)


class OperandPod(NamedTuple):
    operand: str
    is_ready: bool


def driver_facts(plan: Plan, driver_object: DriverObject, nodes: Sequence[Node]) -> DriverFacts:
    """Returns the facts. Three queries; four where the ClusterPolicy's throttle counts."""
    policy = cluster_policy(plan.cluster_id)
    daemonsets = driver_daemonsets(plan)
    recorded = newest_hashes(plan.cluster_id, [each.uid for each in daemonsets])
    return DriverFacts(
        kind=driver_object.kind,
        object_version=driver_object.version,
        to_version=plan.to_version,
        state=driver_object.state,
        message=driver_object.message,
        use_precompiled=driver_object.use_precompiled,
        sandbox_workloads=bool(policy and policy.sandbox_workloads),
        policy_uses_crd=bool(policy and policy.uses_driver_crd),
        has_policy=policy is not None,
        upgrade_policy=upgrade_policy(driver_object),
        is_driver_off=driver_object.is_driver_off,
        owned_by=tuple(driver_object.owned_by),
        nodes=len(nodes),
        pre_installed=tuple(node.name for node in nodes if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED),
        unsettled=tuple(each.name for each in daemonsets if each.observed_generation < each.generation),
        unrecorded=tuple(each.name for each in daemonsets if each.uid not in recorded),
        manager_label=driver_object.manager_label,
        under_way=tuple(n.name for n in nodes if plan.its_component.phase(n.upgrade_state) in BEGUN),
    )


def pods_on(cluster_id: int, names: Collection[str]) -> list[Pod]:
    """Returns the pods on these nodes without ended, terminating and per-node pods. One query."""
    return list(_pods_on_nodes(cluster_id, names).exclude(OF_ITS_NODE).only(*OF_A_POD))


def tenants_on(cluster_id: int, names: Collection[str]) -> list[Pod]:
    """Returns the tenants' pods among them. One query."""
    return list(_pods_on_nodes(cluster_id, names).tenants().only(*OF_A_POD))


def operands_on(cluster_id: int, names: Collection[str]) -> dict[str, frozenset[OperandPod]]:
    """Returns the GPU stack's running pods by node name. One query."""
    found: dict[str, set[OperandPod]] = defaultdict(set)
    rows = (
        _pods_on_nodes(cluster_id, names).exclude(operand="").order_by().values_list("node_name", "operand", "is_ready")
    )
    for name, operand, is_ready in rows.distinct():
        found[name].add(OperandPod(operand, is_ready=is_ready))
    return {name: frozenset(those) for name, those in found.items()}


def _pods_on_nodes(cluster_id: int, names: Collection[str]) -> PodQuerySet:
    return Pod.objects.filter(cluster=cluster_id, node_name__in=names, deleted_at=None).not_done()


def facts_of(
    plan: Plan,
    driver: DriverFacts,
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    *,
    evicts_claims: bool | None,
    now: datetime,
) -> PreflightFacts:
    """Returns the facts for the rules.

    Six queries; some more with claims, a missing operator, missing driver pods or a DRA driver.
    """
    rows = list(pods)
    claiming = _claiming(plan.cluster_id, rows)
    those = [pod_facts(pod, claims_gpus=pod.pk in claiming) for pod in rows]
    leads_back = is_older(plan.to_version, plan.from_version)
    unseen = why_unseen(plan.cluster_id, DISRUPTION_BUDGETS.name, now=now)
    claims = any(pod.claims for pod in rows)
    return PreflightFacts(
        policy=read_policy(driver.upgrade_policy),
        pods=those,
        budgets=() if unseen else _budgets(plan.cluster_id, {pod.namespace for pod in those if pod.is_tenant}),
        budgets_unseen=unseen,
        claims_unseen=why_unseen(plan.cluster_id, RESOURCE_CLAIMS.name, now=now) if claims else "",
        nodes=[_node(node) for node in nodes],
        driver_daemonsets=_driver_daemonsets(plan.cluster_id),
        dra_plugins=_dra_plugins(plan.cluster_id, rows),
        manager_label=driver.manager_label,
        operator_down=operator_down(plan.cluster, now=now),
        operator_unseen=why_unseen(plan.cluster_id, DEPLOYMENTS.name, now=now),
        to_version=plan.to_version,
        from_version=plan.from_version,
        proven_images=images_on(plan.cluster_id, plan.to_version) if leads_back else frozenset(),
        evicts_claims=evicts_claims,
    )


def images_on(cluster_id: int, driver: str) -> frozenset[str]:
    """Returns the images of Ready GPU pods on nodes with this driver. One query."""
    pods = Pod.objects.filter(cluster=cluster_id, node__reported_driver=driver, is_ready=True).tenants()
    return frozenset(pods.order_by().values_list("image", flat=True).distinct())


def _node(node: Node) -> NodeToChange:
    return NodeToChange(
        name=node.name,
        is_ready=node.is_ready,
        reason=node.not_ready_reason,
        labels=node.labels,
        annotations=node.annotations,
        taints=tuple(taint["key"] for taint in node.taints),
    )


def pod_facts(pod: Pod, *, claims_gpus: bool = False) -> PodFacts:
    return PodFacts(
        name=str(pod),
        namespace=pod.namespace,
        node=pod.node_name,
        owner_kind=pod.owner_kind,
        is_ready=pod.is_ready,
        is_pending=pod.phase == "Pending",
        has_empty_dir=pod.has_empty_dir,
        resources=tuple(pod.resources),
        labels=pod.labels,
        is_operand=bool(pod.operand),
        is_tenant=pod.is_tenant,
        claims_gpus=claims_gpus,
        runtime_class=pod.runtime_class,
        visible_devices=pod.visible_devices,
        image=pod.image,
        cuda=cuda_of(pod.image, pod.required_cuda),
    )


def _claiming(cluster_id: int, pods: Sequence[Pod]) -> set[int]:
    """Returns the pods whose claims got devices of NVIDIA's DRA driver."""
    claims = {(pod.namespace, name): pod.pk for pod in pods for name in pod.claims}
    if not claims:
        return set()
    rows = ResourceClaim.objects.filter(cluster=cluster_id, namespace__in={namespace for namespace, _ in claims})
    given = {(row.namespace, row.name) for row in rows if any(_is_gpu(device) for device in row.allocated)}
    return {pod.pk for pod in pods if any((pod.namespace, name) in given for name in pod.claims)}


def _is_gpu(device: Mapping[str, Any]) -> bool:
    return device.get("driver") == DRA_DRIVER and not device.get("admin")


def _driver_daemonsets(cluster_id: int) -> list[DaemonSetFacts]:
    """Returns all driver DaemonSets of the cluster: one without a pod stops the upgrade controller everywhere."""
    rows = list(Operand.objects.filter(cluster=cluster_id, operand=DRIVER).order_by("name"))
    pods = Pod.objects.filter(cluster=cluster_id, owner_uid__in=[row.uid for row in rows])
    made = pods.values_list("owner_uid").annotate(number=Count("pk"), homeless=Count("pk", filter=Q(node_name="")))
    numbers = {uid: (number, homeless) for uid, number, homeless in made.order_by("owner_uid")}
    without: dict[str, list[str]] = defaultdict(list)
    if any(homeless for _, homeless in numbers.values()):
        for pod in pods.filter(node_name="").order_by("name")[:MOST_NAMED]:
            without[pod.owner_uid].append(f"{pod}: {pod.waiting_reason}" if pod.waiting_reason else str(pod))
    return [
        DaemonSetFacts(row.name, row.desired, numbers.get(row.uid, (0, 0))[0], tuple(without[row.uid])) for row in rows
    ]


def _dra_plugins(cluster_id: int, pods: Iterable[Pod]) -> list[DraPluginFacts]:
    """Returns the DRA plugins on these nodes."""
    on: dict[str, list[str]] = defaultdict(list)
    for pod in pods:
        if pod.operand == DRA_PLUGIN:
            on[pod.namespace].append(pod.node_name)
    if not on:
        return []
    return [
        DraPluginFacts(f"{row.namespace}/{row.name}", _label_keys_of_pod(row), tuple(sorted(set(on[row.namespace]))))
        for row in Operand.objects.filter(cluster=cluster_id, operand=DRA_PLUGIN, namespace__in=on).order_by("pk")
    ]


def _label_keys_of_pod(row: Operand) -> frozenset[str]:
    return frozenset(row.node_selector).union(one["key"] for term in row.node_affinity for one in term)


def _budgets(cluster_id: int, namespaces: Collection[str]) -> list[BudgetFacts]:
    rows = DisruptionBudget.objects.filter(cluster=cluster_id, namespace__in=namespaces).order_by("namespace", "name")
    return [budget_facts(row) for row in rows]


def budget_facts(row: DisruptionBudget) -> BudgetFacts:
    return BudgetFacts(
        name=row.name,
        namespace=row.namespace,
        selector=readable(row.selector),
        allowed=row.disruptions_allowed,
        healthy=row.current_healthy,
        needed=row.desired_healthy,
        evicts_unhealthy=row.unhealthy_pod_eviction_policy == ALWAYS,
    )
