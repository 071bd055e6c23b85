"""The room for evicted pods on other nodes, by whole GPUs alone: selectors, taints and quotas are not compared."""

from collections import Counter
from collections.abc import Collection, Sequence

from capacity.rule_rows import Priorities
from fleet.models import Cluster, Node, Pod
from wording.numbers import count


def pending_after(cluster: Cluster, nodes: Sequence[Node], evicted: Collection[str]) -> tuple[str, list[str]]:
    """Returns the room in one sentence, and the evicted pods that find none. Two queries, two more if a pod finds none.

    `evicted`: UIDs of pods with a controller. Each pod takes the fullest node of its product with room, the largest pod
    first. A pod that finds no room here finds none in the cluster; one that finds it may still wait for other reasons.
    Nodes are counted by their free GPUs, so a pod costs the same on any number of nodes.
    """
    rows = Pod.objects.filter(cluster=cluster, uid__in=evicted, gpus__gt=0).select_related("node")
    pods = sorted(rows, key=lambda pod: (-pod.gpus, pod.namespace, pod.name))
    if not pods:
        return "", []
    products = {pod.node.gpu_product for pod in pods if pod.node}
    rooms = Node.objects.filter(
        cluster=cluster,
        is_gpu_node=True,
        is_unschedulable=False,
        is_ready=True,
        gpu_product__in=products,
        gpus_free__gt=0,
    ).exclude(pk__in=[node.pk for node in nodes])
    free: dict[str, Counter[int]] = {product: Counter() for product in products}  # nodes by free GPUs
    for product, number in rooms.values_list("gpu_product", "gpus_free"):
        free[product][number] += 1
    left = sum(number * hosts for each in free.values() for number, hosts in each.items())
    wanted = sum(pod.gpus for pod in pods)
    homeless = [
        pod for pod in pods if not _place(free.get(pod.node.gpu_product if pod.node else "", Counter()), pod.gpus)
    ]
    sentence = f"{count(wanted, 'GPU')} to place again, {left} free on other nodes of the same product."
    if homeless and (lower := _lower(cluster, nodes, homeless, products)):
        sentence += (
            f" The scheduler may end pods of lower priority for them: {count(lower, 'such pod')} on other nodes."
        )
    return sentence, [f"{pod.namespace}/{pod.name} ({count(pod.gpus, 'GPU')})" for pod in homeless]


def _lower(cluster: Cluster, nodes: Sequence[Node], homeless: Sequence[Pod], products: Collection[str]) -> int:
    """Returns the number of GPU pods on other nodes of these products that have a lower priority than one of these."""
    priorities = Priorities.read(cluster.pk)
    classes = priorities.classes_below(max(priorities.of(pod.priority_class) for pod in homeless))
    others = Pod.objects.filter(
        cluster=cluster, gpus__gt=0, deleted_at=None, priority_class__in=classes, node__gpu_product__in=products
    )
    return others.not_done().exclude(node__in=[node.pk for node in nodes]).count()


def _place(free: Counter[int], wanted: int) -> bool:
    """Places a pod on a node with the fewest free GPUs that fit. Returns whether one fits."""
    fewest = min((number for number, nodes in free.items() if nodes and number >= wanted), default=None)
    if fewest is None:
        return False
    free[fewest] -= 1
    free[fewest - wanted] += 1
    return True


def gpus_by_product(nodes: Sequence[Node]) -> list[str]:
    """Returns "H200: 16 GPUs on 2 nodes" for each product, the most GPUs first."""
    gpus: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    unknown: set[str] = set()
    for node in nodes:
        product = node.gpu_product or "unknown product"
        gpus[product] += node.physical_gpus or 0
        hosts[product] += 1
        if node.physical_gpus is None:
            unknown.add(product)
    return [
        f"{product}: {'GPUs unknown' if product in unknown else count(number, 'GPU')} on "
        f"{count(hosts[product], 'node')}"
        for product, number in sorted(gpus.items(), key=lambda each: (-each[1], each[0]))
    ]
