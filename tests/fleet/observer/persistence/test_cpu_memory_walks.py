"""Whatever happens in whatever order, and whoever dies in between: the sums are those of the pods that are there."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.allocation.cpu_memory import SET_BY_PODS
from fleet.models import Node, OtherPod, Pod
from fleet.observer.mirror import known_rows
from fleet.states.pod import ENDED
from kube.structs import PodSeen
from tests.fleet.documents import a_node_seen, a_pod_seen
from tests.fleet.observer.conftest import Mirror, walked

NODES = ("a", "b")
OPERAND = {"app.kubernetes.io/component": "nvidia-driver"}


@dataclass
class Truth:
    """The cluster itself: its pods by name, and which of its nodes have GPUs."""

    mirror: Mirror
    pods: dict[str, dict] = field(default_factory=dict)
    gpu_nodes: set[str] = field(default_factory=set)

    def pod(self, name: str) -> PodSeen:
        one = self.pods[name]
        requests = {"cpu": f"{one['cpu_m']}m", "memory": str(one["memory"])}
        requests |= {"nvidia.com/gpu": "1"} if one["whose"] == "tenants" else {}
        labels = OPERAND if one["whose"] == "operands" else {}
        containers = [{"name": "main", "resources": {"requests": requests}}]
        return a_pod_seen(name, node=one["node"], phase=one["phase"], labels=labels, containers=containers)

    def node(self, name: str):
        has_gpus = name in self.gpu_nodes
        return a_node_seen(name, labels={}, resources={"nvidia.com/gpu": 8} if has_gpus else {})

    def sums(self, node: str) -> dict[str, int]:
        found = dict.fromkeys(SET_BY_PODS, 0)
        for one in self.pods.values():
            if one["node"] == node and one["phase"] not in ENDED:
                found["pods_bound"] += 1
                found[f"cpu_{one['whose']}_m"] += one["cpu_m"]
                found[f"memory_{one['whose']}_bytes"] += one["memory"]
        return found


POD = st.fixed_dictionaries(
    {
        "node": st.sampled_from(["", *NODES]),
        "whose": st.sampled_from(["tenants", "operands", "others"]),
        "phase": st.sampled_from(["Pending", "Running", "Running", "Succeeded"]),
        "cpu_m": st.integers(0, 5000),
        "memory": st.integers(0, 2**40),
    }
)
NAME = st.sampled_from(["p", "q", "r"])
STEP = st.one_of(
    st.tuples(st.just("change"), NAME, POD),
    st.tuples(st.just("delete"), NAME),
    st.tuples(st.just("flip"), st.sampled_from(NODES)),
    st.tuples(st.just("list")),
    st.tuples(st.just("flush")),
    st.tuples(st.just("die")),
)


def play(truth: Truth, step: tuple) -> None:
    mirror = truth.mirror
    match step:
        case "change", name, pod:
            truth.pods[name] = pod
            mirror.see("pods", truth.pod(name))
        case "delete", name if name in truth.pods:
            mirror.see("pods", truth.pod(name), is_gone=True)
            del truth.pods[name]
        case "flip", node:
            truth.gpu_nodes ^= {node}
            mirror.see("nodes", truth.node(node))
        case ("list",):
            list_pods(truth)
        case ("flush",):
            mirror.flush()
        case ("die",):
            take_over(truth)


def list_pods(truth: Truth) -> None:
    truth.mirror.list("pods", [truth.pod(name) for name in truth.pods])


def take_over(truth: Truth) -> None:
    """Somebody dies before a flush; who follows is told again, from the bookmarks, what was not written."""
    mirror = truth.mirror
    mirror.begin()
    mirror.deltas.scope = known_rows.watch_scope_of(mirror.cluster.pk)
    known_rows.learn(mirror.cluster.pk, mirror.deltas.memory)
    for node in NODES:
        mirror.see("nodes", truth.node(node))
    list_pods(truth)


@pytest.mark.django_db(transaction=False)
@settings(max_examples=15)
@given(steps=st.lists(STEP, max_size=14))
def test_the_sums_are_those_of_a_recount(steps):
    with walked() as mirror:
        truth = Truth(mirror)
        truth.mirror.list("nodes", [truth.node(name) for name in NODES])
        list_pods(truth)

        for step in steps:
            play(truth, step)
        truth.mirror.flush()

        for name in NODES:
            row = Node.objects.get(cluster=truth.mirror.cluster, name=name)
            assert {column: getattr(row, column) for column in SET_BY_PODS} == truth.sums(name)
        both = {*Pod.objects.values_list("uid", flat=True)} & {*OtherPod.objects.values_list("uid", flat=True)}
        assert not both
