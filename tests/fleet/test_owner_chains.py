"""Owners above the controllers of pods, to the topmost one."""

import pytest

from capacity.pods.pod_filter import PodFilter
from capacity.pods.rows import table_of
from capacity.pods.workload_groups import groups_of
from fleet import owner_chains as owner_chains_module
from fleet.gpu_pods import owner_chains, top_owners
from fleet.models import Workload
from fleet.owner_chains import SET_LABEL
from tests import make
from tests.callers import calling
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return make.a_cluster("east")


def an_owner(cluster, kind: str, name: str, above: tuple[str, str] | None = None, **given) -> None:
    row = {"cluster": cluster, "uid": f"uid-{kind}-{name}", "namespace": "team-a", "created_at": NOON}
    if above:
        given |= {"owner_kind": above[0], "owner_name": above[1], "owner_uid": f"uid-{above[0]}-{above[1]}"}
    Workload.objects.create(**row, kind=kind, name=name, changed_at=NOON, **given)


def a_pod_of(node, kind: str, name: str, **given):
    return make.a_pod(node, owner_kind=kind, owner_name=name, owner_uid=f"uid-{kind}-{name}", **given)


@pytest.fixture
def pods(cluster):
    """Pods of a TrainJob, of a RayJob, and of a LeaderWorkerSet with its leader."""
    node = make.a_node(cluster, "gpu-1")
    an_owner(cluster, "JobSet", "llama", ("TrainJob", "llama"), desired=4)
    for at in range(2):
        an_owner(cluster, "Job", f"llama-node-{at}", ("JobSet", "llama"))
    an_owner(cluster, "RayCluster", "tune-x7", ("RayJob", "tune"), desired=2)
    an_owner(cluster, "RayJob", "tune", desired=5)  # of its template; the autoscaler has changed the cluster
    an_owner(cluster, "StatefulSet", "vllm", ("LeaderWorkerSet", "vllm"))
    an_owner(cluster, "StatefulSet", "vllm-0", ("Pod", "vllm-0"))
    label = {"labels": {SET_LABEL: "vllm"}}
    return {
        "TrainJob/llama": [a_pod_of(node, "Job", f"llama-node-{at}") for at in range(2)],
        "RayJob/tune": [a_pod_of(node, "RayCluster", "tune-x7")],
        "LeaderWorkerSet/vllm": [
            a_pod_of(node, "StatefulSet", "vllm", **label), a_pod_of(node, "StatefulSet", "vllm-0", **label),
        ],
    }  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 2])
def test_owners_are_asked_for_in_slices(pods, monkeypatch, django_assert_max_num_queries, at_once):
    monkeypatch.setattr(owner_chains_module, "AT_ONCE", at_once)
    every = [pod for those in pods.values() for pod in those]
    with django_assert_max_num_queries(30) as asked:
        owners = top_owners(every)

    assert {"/".join(owners[pod.pk]) for pod in every} == set(pods)
    assert len(asked) > len({pod.owner_uid for pod in every}) / at_once


def test_every_pod_belongs_to_its_topmost_owner_and_is_found_by_it(pods):
    anna = make.a_user("anna", role="viewer")
    owners = top_owners([pod for those in pods.values() for pod in those])

    for name, those in pods.items():
        assert {"/".join(owners[pod.pk]) for pod in those} == {name}
        found = table_of(anna, PodFilter(owner=name), now=NOON)
        assert set(found.pods.values_list("pk", flat=True)) == {pod.pk for pod in those}


def test_a_group_has_the_pods_that_its_owner_wants(pods):
    anna = make.a_user("anna", role="viewer")

    groups = groups_of(table_of(anna, PodFilter(), now=NOON))

    counted = {each.owner: (each.pods, each.desired) for each in groups}
    assert counted == {"TrainJob/llama": (2, 4), "RayJob/tune": (1, 2), "LeaderWorkerSet/vllm": (2, None)}
    answer = calling(anna).get("/api/v1/pod-workloads").json()["workloads"]
    assert {each["name"]: each["pods_wanted"] for each in answer} == {"llama": 4, "tune": 2, "vllm": None}


def test_a_circle_of_owners_ends_before_it_repeats(cluster):
    an_owner(cluster, "JobSet", "a", ("JobSet", "b"))
    an_owner(cluster, "JobSet", "b", ("JobSet", "a"))
    an_owner(cluster, "JobSet", "own", ("JobSet", "own"))
    node = make.a_node(cluster, "gpu-1")
    pods = [a_pod_of(node, "JobSet", name) for name in ("a", "own")]

    chains = owner_chains(pods)

    assert [[owner.name for owner in chains[pod.pk]] for pod in pods] == [["a", "b"], ["own"]]


def test_a_set_with_an_owner_is_one_workload(cluster):
    node = make.a_node(cluster, "gpu-1")
    an_owner(cluster, "LeaderWorkerSet", "vllm", ("DynamoGraph", "chat"))
    an_owner(cluster, "StatefulSet", "vllm", ("LeaderWorkerSet", "vllm"))
    an_owner(cluster, "StatefulSet", "vllm-0", ("Pod", "vllm-0"))
    label = {"labels": {SET_LABEL: "vllm"}}
    pods = [a_pod_of(node, "StatefulSet", "vllm", **label), a_pod_of(node, "StatefulSet", "vllm-0", **label)]

    assert set(top_owners(pods).values()) == {("DynamoGraph", "chat")}
    found = table_of(make.a_user("anna", role="viewer"), PodFilter(owner="DynamoGraph/chat"), now=NOON)
    assert set(found.pods.values_list("pk", flat=True)) == {pod.pk for pod in pods}
