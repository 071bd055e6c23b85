"""Whole jobs by what controls their pods, and the GPU-hours that fall with a node."""

from datetime import timedelta

import pytest

from fleet.models import Workload
from gpu.resources import Layout, Way
from operations.tenants.disruption_cost import Harm, uncounted
from operations.tenants.jobs import harm_of
from tests.make import NOON, a_cluster, a_finding, a_node, a_pod

SLICES = str(Layout({"nvidia.com/gpu": Way("1g.10gb")}))
pytestmark = pytest.mark.django_db


@pytest.fixture
def north():
    return a_cluster("north")


def runs(node, name: str, owner: str = "", *, hours: float = 2, gpus: int = 8, **given):
    kind, _, called = owner.partition("/")
    row = {"started_at": NOON - timedelta(hours=hours), "namespace": "team-a", "owner_kind": kind, "owner_name": called}
    row |= {"owner_uid": f"uid-of-{kind}-{called}" if called else ""}
    return a_pod(node, name, gpus=gpus, **row | given)


def owned(cluster, kind: str, name: str, owner: str) -> None:
    owner_kind, owner_name = owner.split("/")
    Workload.objects.create(
        cluster=cluster, uid=f"uid-of-{kind}-{name}", kind=kind, namespace="team-a", name=name, created_at=NOON,
        changed_at=NOON, owner_kind=owner_kind, owner_name=owner_name, owner_uid=f"uid-of-{owner_kind}-{owner_name}",
    )  # fmt: skip


def harm(*nodes) -> dict[str, Harm]:
    return harm_of(nodes[0].cluster_id, nodes, now=NOON)


def named(one: Harm) -> list[str]:
    return [job.name for job in one.jobs]


def test_a_job_is_lost_whole_wherever_its_pods_run(north):
    """Z14: 8 GPUs for 2 hours here, 4 for 10 there, and a third node that nobody asked about."""
    first, second, third = (a_node(north, f"n{number}") for number in range(3))
    runs(first, "w-0", "PyTorchJob/llama", hours=2)
    runs(second, "w-1", "PyTorchJob/llama", hours=10, gpus=4)
    runs(third, "w-2", "PyTorchJob/llama", hours=1, gpus=1)

    found = harm(first, second)

    assert [one.gpu_hours for one in found.values()] == [57, 57]
    assert found["n0"].sentence == "Ends PyTorchJob team-a/llama (13 GPUs on 3 nodes): 57 GPU-hours at most."


def test_slices_that_are_named_as_gpus_are_none(north):
    """MIG, strategy single: a slice is a nvidia.com/gpu, and how much of a GPU it is nothing here says."""
    cut, whole = a_node(north, "n0", layout=SLICES), a_node(north, "n1")
    runs(cut, "w-0", "PyTorchJob/llama", hours=2, gpus=7)
    runs(whole, "w-1", "PyTorchJob/llama", hours=2, gpus=4)

    pod = "1 pod with slices, shares or claims"
    job = f"PyTorchJob team-a/llama (4 GPUs and {pod} on 2 nodes)"
    assert harm(cut)["n0"].sentence == f"Ends {job}: 8 GPU-hours at most, without {pod}."


def test_what_slices_shares_and_claims_have_done_is_not_none(north):
    node = a_node(north, "n0")
    cut = a_node(north, "n1", layout=SLICES)
    runs(node, "c-0", "PyTorchJob/llama", gpus=0, claims=["train-gpu"], is_tenant=True)
    runs(cut, "s-0", gpus=1)
    runs(cut, "w-0", "MPIJob/young", gpus=0, resources={"nvidia.com/mig-1g.10gb": 2}, is_tenant=True)
    runs(node, "w-1", "MPIJob/young", gpus=4)
    runs(cut, "s-1", gpus=1, started_at=None)

    found = harm(node, cut)

    llama = "PyTorchJob team-a/llama (1 pod with slices, shares or claims on 1 node)"
    young = "MPIJob team-a/young (4 GPUs and 1 pod with slices, shares or claims on 2 nodes)"
    assert found["n0"].sentence == (
        f"Ends {young}, {llama}: 8 GPU-hours at most, without 2 pods with slices, shares or claims."
    )
    assert [one.uncounted for one in found.values()] == [2, 2]
    assert uncounted(list(found.values())) == 3


@pytest.mark.parametrize("owner", ["ReplicaSet/chat-5d", "StatefulSet/db", "DaemonSet/x"])
def test_pods_of_a_service_restart_and_lose_no_work(north, owner):
    first, second = a_node(north, "n0"), a_node(north, "n1")
    runs(first, "p-0", owner, hours=10_000)
    runs(second, "p-1", owner, hours=100)

    found = harm(first)["n0"]

    assert (found.gpu_hours, found.restarts, named(found)) == (0, 1, [])
    assert found.sentence == "Restarts 1 pod of a service."


def test_a_pod_that_nothing_controls_is_a_job_of_its_own(north):
    first, second = a_node(north, "n0"), a_node(north, "n1")
    runs(first, "p-0", hours=1)
    runs(second, "p-1", hours=100)

    found = harm(first)["n0"]

    assert (found.gpu_hours, found.restarts, named(found)) == (8, 0, ["Pod team-a/p-0"])


@pytest.mark.parametrize("kind", ["JobSet", "MPIJob", "RayJob"])
def test_jobs_that_one_thing_made_are_one(north, kind):
    first, second = a_node(north, "n0"), a_node(north, "n1")
    for number, node in enumerate((first, second)):
        owned(north, "Job", f"train-{number}", f"{kind}/train")
        runs(node, f"p-{number}", f"Job/train-{number}")

    assert named(harm(first)["n0"]) == [f"{kind} team-a/train"]
    assert harm(first)["n0"].gpu_hours == 32


def test_what_a_cron_job_made_are_several(north):
    node = a_node(north, "n0")
    for number in range(2):
        owned(north, "Job", f"nightly-{number}", "CronJob/nightly")
        runs(node, f"p-{number}", f"Job/nightly-{number}", hours=2 - number, gpus=1)

    assert named(harm(node)["n0"]) == ["Job team-a/nightly-0", "Job team-a/nightly-1"]


def test_a_leader_and_its_workers_are_one_group(north):
    first, second, third = (a_node(north, f"n{number}") for number in range(3))
    owned(north, "StatefulSet", "big", "LeaderWorkerSet/big")
    owned(north, "StatefulSet", "big-0", "Pod/big-0")
    runs(first, "big-0", "StatefulSet/big", gpus=1)
    runs(second, "big-0-1", "StatefulSet/big-0", gpus=1)
    runs(third, "big-1", "StatefulSet/big", gpus=1)

    assert named(harm(first)["n0"]) == named(harm(second)["n1"]) == ["group of Pod team-a/big-0"]
    assert harm(first)["n0"].gpu_hours == 4
    assert named(harm(third)["n2"]) == []


@pytest.mark.parametrize("gone", [{"phase": "Succeeded"}, {"deleted_at": NOON}])
def test_what_is_over_or_leaving_is_not_lost(north, gone):
    node = a_node(north, "n0")
    runs(node, "p", "Job/x", **gone)

    assert harm(node)["n0"].sentence == "Idle."


def test_a_pod_that_its_node_has_not_taken_has_done_nothing_yet(north):
    node = a_node(north, "n0")
    runs(node, "p", "Job/x", started_at=None)

    assert harm(node)["n0"].gpu_hours == 0
    assert harm(node)["n0"].pods == 1


def test_it_costs_four_queries_however_much_runs(north, django_assert_num_queries):
    nodes = [a_node(north, f"n{number}") for number in range(4)]
    for number, node in enumerate(nodes):
        runs(node, f"p-{number}", "Job/x")

    with django_assert_num_queries(4):
        harm(*nodes)


def test_what_pods_take_to_be_ready_again_is_harm(north):
    """Z16: 8 GPUs for half an hour, of both pods of the service; the quickest of them tells."""
    first, second = a_node(north, "n0"), a_node(north, "n1")
    began = NOON - timedelta(hours=2)
    runs(first, "llm-0", "ReplicaSet/llm-5d", ready_since=began + timedelta(minutes=30))
    runs(second, "llm-1", "ReplicaSet/llm-5d", ready_since=began + timedelta(minutes=55))
    runs(second, "w-0", "PyTorchJob/llama", gpus=4, ready_since=began + timedelta(minutes=15))

    found = harm(first, second)

    assert [one.loading_gpu_hours for one in found.values()] == [4, 5]
    assert found["n0"].sentence == "Restarts 1 pod of a service. 4 GPU-hours until Ready again."


def does_nothing(node, **pods: list[str]) -> None:
    found = {f"team-a/{pod}": {"has": "", "idle_hours": dict.fromkeys(boards, 9)} for pod, boards in pods.items()}
    a_finding(node.cluster, rule="idle-gpus", node=node, facts={"pods": found})


def test_a_node_whose_pods_do_nothing_ends_no_work(north):
    """Z14: by the findings about GPUs that are allocated and idle. A job that works on another node works."""
    nodes = [a_node(north, f"n{number}") for number in range(4)]
    runs(nodes[0], "book-0", "StatefulSet/book", gpus=2)
    does_nothing(nodes[0], **{"book-0": ["GPU-a", "GPU-b"]})
    runs(nodes[1], "half-0", "StatefulSet/half", gpus=2)
    does_nothing(nodes[1], **{"half-0": ["GPU-c"]})
    runs(nodes[2], "w-0", "PyTorchJob/llama", gpus=1)
    does_nothing(nodes[2], **{"w-0": ["GPU-d"]})
    runs(nodes[3], "w-1", "PyTorchJob/llama", gpus=1)
    does_nothing(nodes[3], **{"w-1": ["unknown"]})

    assert [one.ends_no_work for one in harm(*nodes).values()] == [True, False, False, False]


def test_a_job_all_of_whose_pods_do_nothing_is_no_work(north):
    first, second = a_node(north, "n0"), a_node(north, "n1")
    for number, node in enumerate((first, second)):
        runs(node, f"w-{number}", "PyTorchJob/llama", gpus=1)
        does_nothing(node, **{f"w-{number}": [f"GPU-{number}"]})

    assert harm(first)["n0"].ends_no_work
    assert "Its GPUs are allocated and idle." in harm(first)["n0"].sentence
