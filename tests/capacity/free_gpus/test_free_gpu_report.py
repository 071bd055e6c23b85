"""The free GPUs of a pool or a cluster, read from rows: its page parts and its REST answer."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from capacity.free_gpus.free_gpu_report import free_gpus_of_cluster, free_gpus_of_pool
from capacity.free_gpus.stranded_gpus import StrandedBy
from fleet.models import Bookmark, Node, Pod
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]
MIG = {"nvidia.com/mig-1g.18gb": 7}


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("east"), "h200")


def a_node(pool, name: str, *, free: int, **given) -> Node:
    report = {"gpu_allocated": 8 - free, "cpu_allocatable_m": 100_000, "memory_allocatable_bytes": 100}
    return make.a_node(pool.cluster, name, pool=pool, **report | given)


def parts(report) -> dict:
    return {cause: gpus for cause, gpus, _ in report.found.parts}


def test_free_gpus_are_usable_or_stranded_by_one_cause(pool, bob):
    full = a_node(pool, "full", free=0)
    make.a_pod(full, "train", gpus=8, cpu_m=80_000)
    a_node(pool, "empty", free=8)
    a_node(pool, "few", free=3)
    a_node(pool, "cordoned", free=8, is_unschedulable=True)
    a_node(pool, "silent", free=4, is_ready=None)
    a_node(pool, "starved", free=8, cpu_others_m=95_000)
    a_node(pool, "elsewhere", free=8)
    Node.objects.get(name="elsewhere").pools.clear()

    report = free_gpus_of_pool(pool, bob)

    assert report.found.usual.gpus == 8
    assert report.found.usual.cpu_m == 10_000
    assert (report.found.free, report.found.usable) == (31, 8)
    assert parts(report) == {
        StrandedBy.NOT_READY: 4, StrandedBy.CORDON: 8, StrandedBy.CPU: 8, StrandedBy.LEFTOVER: 3,
    }  # fmt: skip
    assert dict(report.found.pods) == {1: 11, 2: 5, 4: 2, 8: 1}
    assert free_gpus_of_cluster(pool.cluster, bob).found.free == 39


def test_a_taint_strands_unless_pods_tolerate_it(pool, bob):
    def taint(key: str) -> list[dict]:
        return [{"key": key, "value": "", "effect": "NoSchedule"}]

    for key in ("nvidia.com/gpu", "team", "broken", "asked"):
        a_node(pool, key.replace("/", "-"), free=8, taints=taint(key))
    holding = a_node(pool, "team-2", free=7, taints=taint("team"))
    make.a_pod(holding)
    tolerations = [{"key": "asked", "operator": "Exists", "value": "", "effect": ""}]
    make.a_pending_pod(pool.cluster, "waiting", gpus=1, placement={"tolerations": tolerations})

    report = free_gpus_of_pool(pool, bob)

    assert parts(report) == {StrandedBy.TAINT: 8}, "of the key broken"
    assert (report.waiting, report.waiting_gpus) == (1, 1)


def test_free_slices_are_parts_of_a_gpu_and_stranded_without_demand(pool, bob):
    cut = a_node(
        pool, "cut", free=8, gpu_allocatable=0, gpu_expected=0, gpu_allocated=0, slices_expected=7,
        slices_allocatable=7, slices_allocated=3, allocatable=MIG, expected=MIG,
        requested={"nvidia.com/mig-1g.18gb": 3},
    )  # fmt: skip
    before = free_gpus_of_pool(pool, bob)
    make.a_pod(cut, gpus=0, is_tenant=True, resources={"nvidia.com/mig-1g.18gb": 1})
    after = free_gpus_of_pool(pool, bob)

    assert parts(before) == {StrandedBy.PROFILE: pytest.approx(4 / 7)}
    assert (parts(after), after.found.usable) == ({}, pytest.approx(4 / 7))


def test_pools_and_their_cluster_strand_the_same_slices(pool, bob):
    """A profile that a pod of another pool requests is requested; slices are named beside the whole GPUs."""
    other = make.a_pool(pool.cluster, "other")
    sums = {"slices_expected": 7, "slices_allocatable": 7, "slices_allocated": 3, "allocatable": MIG, "expected": MIG,
            "gpu_allocatable": 0, "gpu_expected": 0, "gpu_allocated": 0}  # fmt: skip
    for of, name in ((pool, "here"), (other, "there")):
        node = a_node(of, name, free=0, requested={"nvidia.com/mig-1g.18gb": 3}, **sums)
    make.a_pod(node, gpus=0, is_tenant=True, resources={"nvidia.com/mig-1g.18gb": 1})

    found = [free_gpus_of_pool(of, bob).found for of in (pool, other)]
    whole = free_gpus_of_cluster(pool.cluster, bob).found

    assert [each.stranded.get(StrandedBy.PROFILE, 0) for each in (*found, whole)] == [0, 0, 0]
    assert sum(each.usable for each in found) == pytest.approx(whole.usable) == pytest.approx(8 / 7)
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/free-gpus").text
    assert "0.6 free, 0 usable now by pods of the usual 1 GPU, 0.6 as MIG slices that pods request" in text


def test_a_person_of_a_pool_sees_the_free_gpus_of_its_nodes(pool):
    other = make.a_pool(pool.cluster, "other")
    a_node(pool, "mine", free=8)
    a_node(other, "theirs", free=8)
    ann = make.a_user("ann", role="viewer", on=pool)

    assert free_gpus_of_cluster(pool.cluster, ann).found.free == 8
    assert calling(ann).get(f"/api/v1/pools/{other.pk}/free-gpus").status_code == 404
    assert visiting(ann).get(f"/parts/pools/{other.pk}/free-gpus").status_code == 404


def test_the_number_of_queries_does_not_grow(pool, bob):
    a_node(pool, "a", free=8)
    with CaptureQueriesContext(connection) as few:
        free_gpus_of_pool(pool, bob)
    for number in range(20):
        node = a_node(pool, f"n{number}", free=3, taints=[{"key": f"k{number}", "effect": "NoSchedule"}])
        make.a_pod(node, gpus=number, cpu_m=number)
        make.a_pending_pod(pool.cluster, f"w{number}", gpus=1)
    with CaptureQueriesContext(connection) as many:
        free_gpus_of_pool(pool, bob)

    assert len(many) <= len(few) + 1, "tolerations are read where there are taints"
    assert len(many) <= 10


def test_unread_pods_are_unknown_and_nothing_free_is_said(pool, bob):
    viewer = visiting(bob)
    make.counted()
    a_node(pool, "full", free=0)

    assert "No GPU is free." in page(viewer, f"/parts/pools/{pool.pk}/free-gpus").text
    Bookmark.objects.filter(kind="nodes").update(listed_at=None)
    assert (
        "The nodes or pods of the cluster were never read."
        in page(viewer, f"/parts/clusters/{pool.cluster_id}/free-gpus").text
    )
    assert calling(bob).get(f"/api/v1/pools/{pool.pk}/free-gpus").json() == {"free_gpus": None}


def test_pages_and_rest_show_the_free_gpus(pool, bob):
    full = a_node(pool, "full", free=0)
    make.a_pod(full, "train", gpus=8, cpu_m=8000, memory_bytes=80, created_at=NOON - timedelta(hours=1))
    a_node(pool, "empty", free=8)
    a_node(pool, "few", free=3)
    make.counted()

    pool_text = page(visiting(bob), f"/parts/pools/{pool.pk}/free-gpus").text
    cluster_text = page(visiting(bob), f"/parts/clusters/{pool.cluster_id}/free-gpus").text
    answer = calling(bob).get(f"/api/v1/pools/{pool.pk}/free-gpus").json()["free_gpus"]

    assert Pod.objects.get().gpus == 8
    for text in (pool_text, cluster_text):
        assert "11 free, 8 usable now by pods of the usual 8 GPUs" in text
        assert "Fewer than the usual request on a node" in text
    assert (answer["free"], answer["usable"]) == (11, 8)
    assert answer["stranded"] == [{"cause": "leftover", "gpus": 3, "nodes": 1}]
    assert {each["gpus_of_each"]: each["pods"] for each in answer["fitting"]} == {1: 11, 2: 5, 4: 2, 8: 1}
    assert calling(bob).get(f"/api/v1/clusters/{pool.cluster_id}/free-gpus").json()["free_gpus"] == answer
