"""The demand of the next wave's pods and the free GPUs elsewhere, for preview and gate."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fleet.models import Node, Pod, PriorityClass
from rollouts.gates.base import NextWave, PodWants

EXPENDABLE_BELOW = -10  # the Cluster Autoscaler's expendable-pods-priority-cutoff, by default


@dataclass(frozen=True)
class ClusterRoom:
    """The free resources on Ready, schedulable nodes with certain products."""

    expendable: Collection[str]  # names of the priority classes whose pods anybody may displace
    left: Mapping[str, tuple[str, Mapping[str, int]]]  # node name → product, and free amounts by resource
    in_use: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # node's name → of that, by expendable pods

    def next_wave(self, nodes: Sequence[Node], pods: Sequence[Pod], *, busy: Collection[str] = ()) -> NextWave:
        """Returns the next wave's demand. `busy` are nodes in progress."""
        products = {node.name: node.gpu_product for node in nodes}
        moving = [pod for pod in pods if pod.owner_kind != "DaemonSet" and pod.priority_class not in self.expendable]
        wants = tuple(PodWants(str(pod), products[pod.node_name], pod.resources) for pod in moving if pod.resources)
        wanted, without = {pod.product for pod in wants}, {*products, *busy}
        free: dict[str, list[Mapping[str, int]]] = defaultdict(list)
        in_use: Counter[str] = Counter()
        for name, (product, amounts) in self.left.items():
            if product in wanted and name not in without:
                free[product].append(amounts)
                in_use.update(self.in_use.get(name, {}))
        claiming = sum(bool(pod.claims) and not pod.resources for pod in moving)
        by_product = {product: tuple(those) for product, those in free.items()}
        return NextWave(tuple(products), wants, by_product, claiming, in_use)


def read_room(cluster_id: int, products: Collection[str]) -> ClusterRoom:
    """Returns the free resources. Three queries at most."""
    classes = PriorityClass.objects.filter(cluster=cluster_id, value__lt=EXPENDABLE_BELOW)
    expendable = list(classes.values_list("name", flat=True))
    given_up = _requests_by_node(cluster_id, expendable) if expendable else {}
    nodes = Node.objects.filter(cluster=cluster_id, is_gpu_node=True, is_ready=True, is_unschedulable=False)
    rows = nodes.filter(gpu_product__in=products).values_list("name", "gpu_product", "allocatable", "requested")
    left, in_use = {}, {}
    for name, product, allocatable, requested in rows:
        back = given_up.get(name, {})
        left[name] = (product, _remaining_amounts(allocatable, requested, back))
        in_use[name] = {kind: min(amount, left[name][1].get(kind, 0)) for kind, amount in back.items()}
    return ClusterRoom(expendable, left, in_use)


def _remaining_amounts(has: Mapping[str, int], requested: Mapping[str, int], back: Mapping[str, int]) -> dict[str, int]:
    return {kind: max(0, amount - requested.get(kind, 0) + back.get(kind, 0)) for kind, amount in has.items()}


def _requests_by_node(cluster_id: int, classes: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    held: dict[str, Counter[str]] = defaultdict(Counter)
    pods = Pod.objects.filter(cluster=cluster_id, priority_class__in=classes).tenants().not_done().exclude(node_name="")
    for name, resources in pods.values_list("node_name", "resources"):
        held[name].update(resources)
    return held
