"""What the pods of a plan's next wave need, and what is free elsewhere: for the preview, and for the gate."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from fleet.models import Node, Pod, PriorityClass
from rollouts.gates.base import NextWave, PodWants

EXPENDABLE_BELOW = -10  # the Cluster Autoscaler's expendable-pods-priority-cutoff, by default


def next_wave(cluster_id: int, nodes: Sequence[Node], pods: Sequence[Pod], *, busy: Collection[str] = ()) -> NextWave:
    """`nodes`: those that go next. `pods`: the tenants' on them. `busy`: nodes on their way already.

    Three queries at most.
    """
    names = [node.name for node in nodes]
    products = {node.name: node.gpu_product for node in nodes}
    expendable = _expendable(cluster_id)
    moving = [pod for pod in pods if pod.owner_kind != "DaemonSet" and pod.priority_class not in expendable]
    wants = [PodWants(str(pod), products[pod.node_name], pod.resources) for pod in moving if pod.resources]
    free = _free(cluster_id, {pod.product for pod in wants}, {*names, *busy}, expendable) if wants else {}
    claiming = sum(bool(pod.claims) and not pod.resources for pod in moving)
    return NextWave(tuple(names), tuple(wants), free, claiming)


def _expendable(cluster_id: int) -> list[str]:
    """Names of the priority classes whose pods anybody may displace."""
    classes = PriorityClass.objects.filter(cluster=cluster_id, value__lt=EXPENDABLE_BELOW)
    return list(classes.values_list("name", flat=True))


def _free(
    cluster_id: int, products: Collection[str], without: Collection[str], expendable: Sequence[str]
) -> dict[str, tuple[Mapping[str, int], ...]]:
    """Product → what each Ready, schedulable node with it has left, by resource."""
    given_up = _held_by(cluster_id, expendable) if expendable else {}
    nodes = Node.objects.filter(cluster=cluster_id, is_gpu_node=True, is_ready=True, is_unschedulable=False)
    found: dict[str, list[Mapping[str, int]]] = defaultdict(list)
    rows = nodes.filter(gpu_product__in=products).values_list("name", "gpu_product", "allocatable", "requested")
    for name, product, allocatable, requested in rows:
        if name not in without:
            back = given_up.get(name, {})
            found[product].append(
                {kind: max(0, has - requested.get(kind, 0) + back.get(kind, 0)) for kind, has in allocatable.items()}
            )
    return {product: tuple(nodes) for product, nodes in found.items()}


def _held_by(cluster_id: int, classes: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
    held: dict[str, Counter[str]] = defaultdict(Counter)
    pods = Pod.objects.filter(cluster=cluster_id, priority_class__in=classes).tenants().not_done().exclude(node_name="")
    for name, resources in pods.values_list("node_name", "resources"):
        held[name].update(resources)
    return held
