"""The MIG demand of a pool: reads its GPU nodes, and the times of pods on them."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from capacity.free_gpus.mig_demand import MigDemand, ProfileRequest, mig_demand
from fleet.models import Bookmark, Node, Pod, PodPlacement, Pool
from fleet.models.node import members_of
from gpu.labels import GPU_PRODUCT
from gpu.resources import Layout, ResourceKind, Vendor
from health.evaluation.pending_pods import pools_of
from kube.resources import NODES, PODS
from people.models import User

DAYS = 14
PLACEMENTS_AT_MOST = 100_000  # the newest
WAITING_AT_MOST = 5000  # the oldest
BY_NAME = Layout()  # of a pod without a node


@dataclass(frozen=True)
class MigDemandReport:
    begin: datetime  # 14 days ago, or when the cluster was added
    products: list[MigDemand]  # with slices, offered or requested
    is_cut: bool = False  # older pods of the period are not counted


def mig_demand_of_pool(pool: Pool, user: User, *, now: datetime) -> MigDemandReport | None:
    """Returns the demand on the pool's NVIDIA GPUs. None: nodes or pods were never read. Six queries."""
    if not Bookmark.objects.knows_all(pool.cluster_id, NODES.name, PODS.name):
        return None
    begin = max(now - timedelta(days=DAYS), pool.cluster.added_at)
    nodes = Node.objects.visible_to(user).filter(pk__in=members_of([pool.pk]), gpu_vendor=Vendor.NVIDIA).order_by()
    rows = nodes.annotate(offers=Cast("allocatable", TextField())).values_list(
        "uid", "gpu_product", "layout", "physical_mig", "physical_whole", "offers"
    )
    product_of, layouts = dict[str, str](), dict[str, Layout]()
    gpus: Counter[str] = Counter()
    offered: dict[str, Counter[str]] = defaultdict(Counter)
    for uid, product, layout, cut, whole, offers in rows:
        product_of[uid], layouts[uid] = product, Layout.read(layout)
        gpus[product] += cut + whole
        offered[product].update(dict(_by_profile(json.loads(offers), layouts[uid])))
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
    return MigDemandReport(begin, shown, len(times) > PLACEMENTS_AT_MOST)


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
