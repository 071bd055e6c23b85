"""What is requested of a node's CPU and memory: by GPU pods, by operands, and by pods that are not kept."""

from threading import Event

import pytest

from fleet.models import Node, OtherPod, Pod
from fleet.observer.mirror import known_rows
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.rows.pod import pod_row
from fleet.observer.persistence import cpu_memory
from fleet.observer.persistence.cluster_removal import forget
from fleet.observer.persistence.upsert import Written
from kube.structs import PodSeen
from tests.fleet.documents import a_daemonset_seen, a_node_seen, a_pod_seen

pytestmark = pytest.mark.sqlite

GI = 2**30
DRIVER = {"app.kubernetes.io/component": "nvidia-driver"}


def asking(name: str, cpu: str = "1", memory: str = "1Gi", *, gpus: int = 0, node: str = "cpu-001", **more) -> PodSeen:
    requests = {"cpu": cpu, "memory": memory} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return a_pod_seen(name, containers=[{"name": "main", "resources": {"requests": requests}}], node=node, **more)


def a_cpu_node(name: str = "cpu-001", **more):
    return a_node_seen(name, labels={}, resources={}, **more)


def requested(name: str = "cpu-001") -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """By tenants, operands and others: CPU in millicores, memory in GiB."""
    row = Node.objects.get(name=name)
    cpu = (row.cpu_tenants_m, row.cpu_operands_m, row.cpu_others_m)
    memory = (row.memory_tenants_bytes, row.memory_operands_bytes, row.memory_others_bytes)
    return cpu, tuple(each // GI for each in memory)  # type: ignore[return-value]


@pytest.fixture
def listed(mirror):
    """A GPU node and one without, with a pod that is not kept."""
    mirror.list("nodes", [a_node_seen(), a_cpu_node()])
    mirror.list("daemonsets.apps", [])
    mirror.list("pods", [asking("web")])
    return mirror


def test_a_node_says_what_it_has(listed):
    row = Node.objects.get(name="gpu-001")

    assert (row.cpu_allocatable_m, row.memory_allocatable_bytes) == (127_000, 2100 * GI)


def test_a_node_says_how_many_pods_it_takes(mirror):
    seen = a_node_seen()
    seen.status.allocatable["pods"] = "110"

    mirror.list("nodes", [seen])

    assert Node.objects.get().pods_allocatable == 110


def test_a_node_that_does_not_say_is_unknown(mirror):
    silent = a_node_seen()
    silent.status.allocatable.clear()

    mirror.list("nodes", [silent])

    row = Node.objects.get()
    assert (row.cpu_allocatable_m, row.memory_allocatable_bytes, row.pods_allocatable) == (None, None, None)


def test_pods_are_summed_by_what_they_are(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("daemonsets.apps", [a_daemonset_seen()])

    mirror.list(
        "pods",
        [
            asking("train", "8", "64Gi", gpus=4, node="gpu-001"),
            asking("driver", "500m", "2Gi", labels=DRIVER, node="gpu-001"),
            asking("log-shipper", "100m", "1Gi", node="gpu-001"),
        ],
    )

    assert requested("gpu-001") == ((8000, 500, 100), (64, 2, 1))


def test_a_pod_that_is_not_kept_has_a_lean_row(listed):
    row = OtherPod.objects.get()

    assert (row.uid, row.node_name, row.cpu_m, row.memory_bytes) == ("uid-of-web", "cpu-001", 1000, GI)
    assert not Pod.objects.exists()
    assert requested() == ((0, 0, 1000), (0, 0, 1))


@pytest.mark.parametrize(
    "nothing",
    [
        asking("web", node=""),
        asking("web", phase="Succeeded"),
        asking("web", phase="Failed"),
    ],
)
def test_a_pod_that_takes_nothing_any_more_has_none(listed, nothing):
    listed.see("pods", nothing)
    listed.flush()

    assert not OtherPod.objects.exists()
    assert requested() == ((0, 0, 0), (0, 0, 0))


def test_a_pod_without_requests_is_one_of_its_node(listed):
    listed.see("pods", a_pod_seen("bare", gpus=0, node="cpu-001"))
    listed.see("pods", asking("train", gpus=1, node="gpu-001"))
    listed.flush()
    assert dict(Node.objects.values_list("name", "pods_bound")) == {"cpu-001": 2, "gpu-001": 1}
    assert requested() == ((0, 0, 1000), (0, 0, 1))

    listed.see("pods", a_pod_seen("bare", gpus=0, node="cpu-001", phase="Succeeded"))
    listed.see("pods", asking("train", gpus=1, node="gpu-001", phase="Failed"))
    listed.flush()

    assert dict(Node.objects.values_list("name", "pods_bound")) == {"cpu-001": 1, "gpu-001": 0}


def test_a_pod_that_is_gone_is_not_counted(listed):
    listed.see("pods", asking("web"), is_gone=True)
    listed.flush()

    assert not OtherPod.objects.exists()
    assert requested() == ((0, 0, 0), (0, 0, 0))


def test_a_pod_that_came_and_went_between_two_flushes_leaves_nothing(listed):
    listed.see("pods", asking("job"))
    listed.see("pods", asking("job"), is_gone=True)
    listed.flush()

    assert requested() == ((0, 0, 1000), (0, 0, 1))


def test_what_a_whole_list_lacks_is_gone(listed):
    listed.list("pods", [asking("api", "2", "3Gi")])

    assert [row.uid for row in OtherPod.objects.all()] == ["uid-of-api"]
    assert requested() == ((0, 0, 2000), (0, 0, 3))


def test_a_pod_becomes_kept_when_its_node_gets_gpus(listed):
    listed.see("nodes", a_node_seen("cpu-001"))
    listed.flush()
    assert listed.to_list_again >= {"pods"}

    listed.list("pods", [asking("web")])

    assert not OtherPod.objects.exists()
    assert [pod.name for pod in Pod.objects.all()] == ["web"]
    assert requested() == ((0, 0, 1000), (0, 0, 1))


def test_a_pod_that_is_kept_no_longer_goes_on_being_counted(listed):
    listed.list("pods", [asking("web"), asking("train", gpus=1)])
    assert requested() == ((1000, 0, 1000), (1, 0, 1))

    listed.see("pods", asking("train"))
    listed.flush()

    assert not Pod.objects.exists()
    assert requested() == ((0, 0, 2000), (0, 0, 2))


def test_a_worker_that_takes_over_goes_on_where_the_rows_are(listed):
    listed.begin()
    known_rows.learn(listed.cluster.pk, listed.deltas.memory)

    listed.see("pods", asking("web"), is_gone=True)
    listed.flush()

    assert requested() == ((0, 0, 0), (0, 0, 0))


def test_a_node_that_comes_after_its_pods_counts_them(mirror):
    mirror.list("pods", [asking("web", node="cpu-001")])

    mirror.list("nodes", [a_cpu_node()])

    assert requested() == ((0, 0, 1000), (0, 0, 1))


def test_a_heartbeat_waits_for_no_write(listed):
    listed.see("pods", asking("web", statuses=[{"name": "main", "ready": False, "restartCount": 7}]))

    assert not listed.deltas.has_news


def test_a_pod_that_only_became_ready_is_not_counted_again():
    old, new = (pod_row(asking("train", gpus=1, ready=ready)) for ready in ("False", "True"))
    grown = pod_row(asking("train", "2", gpus=1))

    assert cpu_memory.touched_by(Written(KINDS["pods"], changed=[(old, new)])) == set()
    assert cpu_memory.touched_by(Written(KINDS["pods"], changed=[(old, grown)])) == {"cpu-001"}


def test_pods_that_are_not_kept_move_no_plan(listed, told):
    told.clear()

    listed.see("pods", asking("api"))
    listed.flush()

    assert [(message["kinds"], message["nodes"]) for message in told] == [(["other-pods"], [])]


def test_a_cluster_that_is_forgotten_takes_them_with_it(listed):
    forget(listed.cluster.pk, epoch=1, stop=Event(), clock=lambda: listed.now)

    assert not OtherPod.objects.exists()


def test_what_no_machine_has_breaks_no_sum(listed):
    listed.list("pods", [asking(f"pod-{number}", "1e18", "8Ei") for number in range(200)])

    assert requested() == ((0, 0, 200 * 10**9), (0, 0, 200 * 2**16))
