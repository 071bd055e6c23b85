"""The bench of waiting pods, small."""

import random

import pytest

from benchmarks import pending
from benchmarks.pending_cases import GPU, MIG, NOW, a_node, a_pod, compared, pod_object, read
from benchmarks.pending_fixes import UnknownChange, read_fix
from capacity.wait_reasons.early_reasons import WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import NodeIndex

WITHOUT_ACT = (
    "Add nodes",
    "Give a node the MIG profile",
    "Wait: the scheduler tries again",
)


def test_the_check_agrees_with_the_simulators_scheduler():
    assert pending.agreement_ratio(random.Random(3), 60) == 1.0


def test_every_proposed_change_can_be_applied():
    dice = random.Random(3)
    nodes = {node["metadata"]["name"]: node for node in (a_node(dice, place) for place in range(20))}
    index = NodeIndex(map(compared, nodes.values()))

    for pod in (a_pod(dice, number) for number in range(100)):
        for change in explain(read(pod), index, WaitFacts(has_events=True), now=NOW).changes:
            if not change.text.startswith(WITHOUT_ACT):
                read_fix(change.text, pod_object(pod), nodes)


def test_a_change_is_read_from_its_sentence():
    pod = pod_object(a_pod(random.Random(1), 1))
    nodes = {"node-00001": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}}

    both = "Two changes are needed. Request at most 2 slices 1g.10gb per pod. Uncordon node-00001."
    found = read_fix(both, pod, nodes)
    amounts = found.pod["spec"]["containers"][0]["resources"]["requests"]
    assert (amounts[MIG], found.nodes) == ("2", {"node-00001": {"unschedulable": False}})
    repaired = read_fix("Repair node-00001. Kubernetes sets the taint a:NoSchedule.", pod, nodes)
    assert repaired.nodes == {"node-00001": {"taints": []}}
    moved = read_fix("Move pods with 3 GPUs from node-00001 to other nodes: 4 are free there.", pod, nodes)
    assert moved.freed == {"node-00001": 3}
    assert GPU not in read_fix("Wait until other pods end.", pod, nodes).freed
    with pytest.raises(UnknownChange):
        read_fix("Ask somebody.", pod, nodes)
