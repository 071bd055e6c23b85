"""The MIG demand of a pool: reads its GPU nodes, and the times of pods on them."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from capacity.free_gpus.defragmentation_report import CPU_AND_MEMORY, allowed_by, free_amount, taints_in
from capacity.free_gpus.mig_demand import MigDemand, ProfileRequest, mig_demand
from capacity.free_gpus.mig_relayout import MigRelayout, ShapedNode, relayout
from capacity.free_gpus.movable_pods import PodsOnNodes
from fleet.models import Bookmark, DisruptionBudget, Node, Pod, PodPlacement, Pool
from fleet.models.node import members_of
from gpu.labels import GPU_PRODUCT
from gpu.resources import Layout, ResourceKind, Vendor, fraction_of
from health.evaluation.pending_pods import pools_of
from kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from people.models import User

DAYS = 14
PLACEMENTS_AT_MOST = 100_000  # the newest
WAITING_AT_MOST = 5000  # the oldest
BY_NAME = Layout()  # of a pod without a node
COLUMNS = (
    "pk", "uid", "name", "gpu_product", "layout", "physical_mig", "physical_whole", "physical_gpus",
    "shares_allocatable", "is_ready", "is_unschedulable", *CPU_AND_MEMORY,
)  # fmt: skip


@dataclass(frozen=True)
class MigDemandReport:
    begin: datetime  # 14 days ago, or when the cluster was added
    products: list[MigDemand]  # with slices, offered or requested
    is_cut: bool = False  # older pods of the period are not counted
    changes: Mapping[str, MigRelayout] = field(default_factory=dict)  # by product: nodes to give another layout
    knows_budgets: bool = True  # False: no node is proposed, since PodDisruptionBudgets were never read


def mig_demand_of_pool(pool: Pool, user: User, *, now: datetime) -> MigDemandReport | None:
    """Returns the demand on the pool's NVIDIA GPUs. None: nodes or pods were never read. Ten queries, and those of
    `chains_above`.
    """
    if not Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name):
        return None
    begin = max(now - timedelta(days=DAYS), pool.cluster.added_at)
    nodes = Node.objects.visible_to(user).filter(pk__in=members_of([pool.pk]), gpu_vendor=Vendor.NVIDIA).order_by()
    texts = {f"{name}_text": Cast(name, TextField()) for name in ("allocatable", "requested", "taints")}
    rows = list(nodes.annotate(**texts).values(*COLUMNS, *texts))
    product_of, layouts = dict[str, str](), dict[str, Layout]()
    gpus: Counter[str] = Counter()
    offered: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        product, uid = row["gpu_product"], row["uid"]
        product_of[uid], layouts[uid] = product, Layout.read(row["layout"])
        gpus[product] += row["physical_mig"] + row["physical_whole"]
        offered[product].update(dict(_by_profile(json.loads(row["allocatable_text"]), layouts[uid])))
    lasting = Q(until=None) | Q(until__gt=begin)
    placements = PodPlacement.objects.filter(lasting, cluster=pool.cluster_id, node_uid__in=list(layouts))
    times = list(
        placements.filter(since__lt=now)
        .order_by("-since")
        .values_list("node_uid", "resources", "since", "until", "seen_until")[: PLACEMENTS_AT_MOST + 1]
    )
    requests: dict[str, list[ProfileRequest]] = defaultdict(list)
    for uid, resources, since, until, seen_until in times[:PLACEMENTS_AT_MOST]:
        for profile, number in _by_profile(resources, layouts[uid]):
            requests[product_of[uid]].append(ProfileRequest(profile, number, since, seen_until or until or now))
    for product, request in _waiting(pool, user, sorted(gpus), begin=begin, now=now):
        requests[product].append(request)
    found = (
        mig_demand(product, gpus[product], offered[product], requests[product], begin=begin, end=now)
        for product in sorted(gpus)
    )
    shown = [demand for demand in found if demand.unknown or any(line.profile for line in demand.profiles)]
    is_cut = len(times) > PLACEMENTS_AT_MOST
    if not shown or not Bookmark.objects.knows_all(pool.cluster_id, DISRUPTION_BUDGETS.name):
        unchanged = {each.product: MigRelayout(each) for each in shown}
        return MigDemandReport(begin, shown, is_cut, unchanged, knows_budgets=not shown)
    changes = _changes(pool, user, shown, [row for row in rows if row["is_ready"]], now=now)
    return MigDemandReport(begin, shown, is_cut, changes)


def _changes(
    pool: Pool, user: User, demands: Iterable[MigDemand], rows: Iterable[Mapping[str, Any]], *, now: datetime
) -> Mapping[str, MigRelayout]:
    """Returns the proposed changes by product. Three queries, and those of `chains_above`."""
    budgets = list(DisruptionBudget.objects.filter(cluster=pool.cluster_id))
    pods, allowed = PodsOnNodes.load(pool, user, budgets), allowed_by(budgets)
    shaped: dict[str, list[ShapedNode]] = defaultdict(list)
    mixed: Counter[str] = Counter()
    for row in rows:
        node = _shaped_node(row, pods, now=now)
        if node is not None:
            shaped[row["gpu_product"]].append(node)
        else:
            mixed[row["gpu_product"]] += 1
    return {
        each.product: relayout(each, shaped[each.product], mixed=mixed[each.product], budgets=allowed)
        for each in demands
    }


def _shaped_node(row: Mapping[str, Any], pods: PodsOnNodes, *, now: datetime) -> ShapedNode | None:
    """Returns the node. None: its GPUs have several shapes or none, or are shared."""
    layout, product, gpus = Layout.read(row["layout"]), row["gpu_product"], row["physical_gpus"]
    offers = dict(_by_profile(json.loads(row["allocatable_text"]), layout))
    if len(offers) != 1 or row["shares_allocatable"] or not gpus:
        return None
    [(profile, units)] = offers.items()
    taken = _units_of(profile, json.loads(row["requested_text"]), layout)
    there = pods.by_node.get(row["pk"], ())
    return ShapedNode(
        row["pk"], row["name"], profile, gpus, units, 0 if row["is_unschedulable"] else max(0, units - taken),
        [
            pods.movable(
                pod, fraction_of(pod["resources"], layout, product=product).gpus,
                units=_units_of(profile, pod["resources"], layout), now=now,
            )
            for pod in there
        ],
        cpu_m=free_amount(row, "cpu", "m"), memory_bytes=free_amount(row, "memory", "bytes"),
        taints=taints_in(row["taints_text"]),
        may_change=not row["is_unschedulable"] and all(map(pods.can_start_again, there)),
    )  # fmt: skip


def _units_of(profile: str, resources: Mapping[str, int], layout: Layout) -> int:
    return sum(number for shape, number in _by_profile(resources, layout) if shape == profile)


def _waiting(
    pool: Pool, user: User, products: Collection[str], *, begin: datetime, now: datetime
) -> Iterator[tuple[str, ProfileRequest]]:
    """Yields the requests of pods that wait in vain, from their creation, if their node selector allows the pool.

    A pod that several products of the pool would serve is left out: nothing tells which one.
    """
    waits = Pod.objects.visible_to(user).filter(
        cluster=pool.cluster_id, node_name="", phase="Pending", deleted_at=None, is_tenant=True
    )
    pods = list(waits.order_by("created_at", "pk")[:WAITING_AT_MOST])
    pools = pools_of(pool.cluster, pods)
    for pod in pods:
        selected = pod.placement.get("node_selector", {}).get(GPU_PRODUCT)
        its = [product for product in products if selected in (None, product)]
        if len(its) == 1 and pool.pk in pools[pod.pk]:
            for profile, number in _by_profile(pod.resources, BY_NAME):
                yield its[0], ProfileRequest(profile, number, max(begin, pod.created_at), now)


def _by_profile(resources: Mapping[str, int], layout: Layout) -> Iterator[tuple[str, int]]:
    """Yields slices by profile, and whole GPUs. Shared GPUs have no profile of their own, and are left out."""
    for name, number in resources.items():
        way = layout.way(name)
        if number > 0 and way.kind in (ResourceKind.WHOLE, ResourceKind.SLICE):
            yield way.profile, number
