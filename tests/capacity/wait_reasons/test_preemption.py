"""Whether preemption would make room for a pod, and why not."""

import pytest

from capacity.wait_reasons.neighbours import Neighbours, PreemptiblePods
from capacity.wait_reasons.node_index import NodeIndex
from capacity.wait_reasons.obstacles import CPU, MEMORY, find_obstacles
from capacity.wait_reasons.preemption import preemption_of
from tests.capacity.wait_reasons.clusters import GIB, GPU, a_node, a_pod

TWO_GPUS = {GPU: 2, CPU: 8_000, MEMORY: 64 * GIB}


def outlook(*lower: tuple[str, int, int], gpus: int = 2, read: bool = True, **placement):
    """Returns the outlook on two full nodes with pods of lower priority: node, priority and number of GPUs."""
    nodes = [a_node(name, used=8) for name in ("a", "b")]
    keys = {node.name: node.key for node in nodes}
    pods = [PreemptiblePods(keys[name], priority, 1, TWO_GPUS | {GPU: held}) for name, priority, held in lower]
    pod = a_pod(gpus=gpus, placement={"priority": 100} | placement)
    index = NodeIndex(nodes, Neighbours({}, preemptible=pods if read else None))
    return preemption_of(find_obstacles(pod, index))


@pytest.mark.parametrize(
    ("given", "placement", "text"),
    [
        ((), {"preemption_policy": "Never"}, "The pod never preempts others: its preemptionPolicy is Never."),
        ((), {}, "No pod of lower priority holds what the pod lacks."),
        ((("a", 100, 8),), {}, "No pod of lower priority holds what the pod lacks."),
        ((("a", 0, 0),), {}, "No pod of lower priority holds what the pod lacks."),
        ((("a", 0, 1),), {}, "Pods of lower priority use too few resources on each of 1 node with such pods."),
        (
            (("a", 0, 1), ("a", 50, 1), ("b", 0, 2)), {},
            "Pods of lower priority could be preempted on 2 nodes, with fewest on b.",
        ),
        (
            (("a", 0, 8),), {"node_selector": {"zone": "x"}},
            "Preemption does not help: no node would fit the pod if it were empty.",
        ),
    ],
)  # fmt: skip
def test_the_outlook(given, placement, text):
    assert outlook(*given, **placement).text == text


def test_priorities_that_were_not_read_are_not_compared():
    assert outlook(read=False) is None
