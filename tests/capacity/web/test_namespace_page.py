"""The pages of a namespace and of a workload, their REST answers, and pods by workload."""

import csv
from datetime import timedelta
from io import StringIO
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import Pod, ResourceQuota, Workload
from kube.resources import RESOURCE_QUOTAS
from tests import make
from tests.callers import calling
from tests.capacity.usage.test_usage_report import TODAY, some_usage
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]


@pytest.fixture
def cluster():
    return make.a_cluster("east")


@pytest.fixture
def node(cluster):
    return make.a_node(cluster, "gpu-1", pool=make.a_pool(cluster, "h200"), allocatable={"nvidia.com/gpu": 8})


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def viewer(bob):
    return visiting(bob)


def a_workload(cluster, kind, name, **given):
    row = {"namespace": "team-a", "uid": f"uid-{kind}-{name}", "created_at": NOON, "changed_at": NOON}
    return Workload.objects.create(cluster=cluster, kind=kind, name=name, **{**row, **given})


def a_quota(cluster, **given):
    hard = {"requests.nvidia.com/gpu": "2"}
    ResourceQuota.objects.create(
        cluster=cluster, namespace="team-a", name="gpus", uid="q", changed_at=NOON, hard=hard, **given
    )


def a_deployment_with_a_pod(cluster, node):
    a_workload(cluster, "Deployment", "chat", desired=2, ready=1)
    above = {"owner_kind": "Deployment", "owner_name": "chat", "owner_uid": "uid-Deployment-chat"}
    a_workload(cluster, "ReplicaSet", "chat-7d9", **above)
    return make.a_pod(node, "chat-7d9-x", gpus=2, owner_kind="ReplicaSet", owner_name="chat-7d9",
                      owner_uid="uid-ReplicaSet-chat-7d9")  # fmt: skip


def test_a_namespace_has_its_requests_quota_workloads_hours_and_findings(viewer, bob, cluster, node):
    pod = a_deployment_with_a_pod(cluster, node)
    make.a_pending_pod(cluster, "train-0", gpus=4)
    make.a_pod(node, "of-others", namespace="team-b")
    make.a_bookmark(cluster, RESOURCE_QUOTAS.name)
    a_quota(cluster, used={"requests.nvidia.com/gpu": "2"})
    some_usage(cluster, "", ("team-a", "ReplicaSet/chat-7d9"), used=5)
    some_usage(cluster, "", ("team-b", "Job/x"), used=100)
    make.a_finding(cluster, "Job team-a/train", rule="pods-rejected", title="Pods of Job team-a/train are rejected")
    make.a_finding(cluster, "Job team-b/other", rule="pods-rejected", title="Pods of another")
    make.a_finding(cluster, node=node, title="gpu-1 is hot")

    seen = page(viewer, f"/clusters/{cluster.pk}/namespaces/team-a")

    assert "nvidia.com/gpu 2 4 8 25 %" in seen.text
    assert "gpus requests.nvidia.com/gpu 2 2" in seen.text
    assert "Deployment chat 1 running 2 –" in seen.text
    assert "Job train 1 pending 0 4" in seen.text
    assert "5.0" in seen.text
    assert "100.0" not in seen.text
    assert "Pods of Job team-a/train are rejected" in seen.text
    assert "gpu-1 is hot" in seen.text
    assert "Pods of another" not in seen.text
    assert f"/clusters/{cluster.pk}/workloads/team-a/Deployment/chat" in seen.links
    found = calling(bob).get(f"/api/v1/clusters/{cluster.pk}/namespaces/team-a").json()
    assert found["resources"] == [{"resource": "nvidia.com/gpu", "has": 2, "waits": 4, "allocatable": 8}]
    assert [(each["name"], each["by_state"], each["gpus"], each["gpus_waiting"]) for each in found["workloads"]] == [
        ("train", {"pending": 1}, 0, 4), ("chat", {"ready": 1}, 2, 0),
    ]  # fmt: skip
    assert found["quotas"][0]["is_full"]
    assert found["usage"]["total"]["gpu_hours"] == 5
    assert {each["title"] for each in found["findings"]} == {"Pods of Job team-a/train are rejected", "gpu-1 is hot"}
    assert f"/clusters/{cluster.pk}/namespaces/team-a" in page(viewer, f"/pods/{pod.pk}").links


def test_a_workload_has_the_pods_and_hours_of_what_it_makes(viewer, bob, cluster, node):
    pod = a_deployment_with_a_pod(cluster, node)
    make.a_pod(node, "other", owner_name="chat-2")
    for owner, hours in (("ReplicaSet/chat-7d9", 5), ("ReplicaSet/chat-gone1", 7), ("ReplicaSet/chat-b-7d9", 90)):
        some_usage(cluster, "", ("team-a", owner), used=hours)
    some_usage(cluster, "", ("team-a", "Deployment/chat"), day=TODAY - timedelta(days=3), idle=1)
    address = f"/clusters/{cluster.pk}/workloads/team-a/Deployment/chat"

    seen = page(viewer, address)

    assert "Deployment chat 1 of 2 pods ready" in seen.text
    assert f"/pods/{pod.pk}" in seen.links
    assert "team-a/other" not in seen.text
    found = calling(bob).get(f"/api/v1{address}").json()
    assert (found["pods"], found["usage"]["total"]["gpu_hours"]) == (1, 13)
    days = viewer.get(next(link for link in seen.links if link.startswith("/usage.csv"))).content.decode()
    assert sum(float(row["gpu_hours"] or 0) for row in csv.DictReader(StringIO(days))) == 13


def test_without_rows_it_says_so_and_unread_quotas_are_no_absent_ones(viewer, cluster, node):
    assert (
        "No GPU pods, quota or GPU-hours are known here."
        in page(viewer, f"/clusters/{cluster.pk}/namespaces/nothing").text
    )
    make.a_pod(node, "one")
    assert "Quotas: not read" in page(viewer, f"/clusters/{cluster.pk}/namespaces/team-a").text
    make.a_bookmark(cluster, RESOURCE_QUOTAS.name)
    assert (
        "No ResourceQuota of this namespace limits GPUs."
        in page(viewer, f"/clusters/{cluster.pk}/namespaces/team-a").text
    )
    assert viewer.get(f"/clusters/{cluster.pk}/workloads/team-a").status_code == 404


def test_a_viewer_of_a_pool_sees_no_quota_and_only_its_pods(cluster, node):
    make.a_pod(node, "seen")
    make.a_pod(make.a_node(cluster, "gpu-2", pool=make.a_pool(cluster, "b200")), "hidden")
    make.a_bookmark(cluster, RESOURCE_QUOTAS.name)
    a_quota(cluster)
    guest = make.a_user("pia", role="viewer", on=node.pools.get())

    found = calling(guest).get(f"/api/v1/clusters/{cluster.pk}/namespaces/team-a").json()

    assert (found["pods"], found["quotas"]) == (1, None)
    assert visiting(make.a_user("eve")).get(f"/clusters/{cluster.pk}/namespaces/team-a").status_code == 404


def test_pods_are_listed_by_workload_with_file_and_rest(viewer, bob, cluster, node):
    a_deployment_with_a_pod(cluster, node)
    make.a_pod(node, "alone", owner_kind="", owner_name="")
    for number in range(3):
        make.a_pending_pod(cluster, f"train-{number}", gpus=2)

    seen = page(viewer, "/pods?by=workload")

    assert "Job train team-a · east 3 pending 0 6" in seen.text
    assert "without a controller" in seen.text
    assert f"/clusters/{cluster.pk}/workloads/team-a/Job/train" in seen.links
    inside = next(link for link in seen.links if "owner=Deployment" in link)
    assert "chat-7d9-x" in page(viewer, inside).text
    assert "train-0" not in page(viewer, inside).text
    rows = list(csv.DictReader(StringIO(viewer.get("/pods.csv?by=workload").content.decode())))
    assert (rows[0]["workload"], rows[0]["pods"], rows[0]["gpus_waiting"]) == ("train", "3", "6")
    found = calling(bob).get("/api/v1/pod-workloads?limit=1").json()
    assert (found["count"], found["workloads"][0]["name"]) == (3, "train")
    assert calling(bob).get("/api/v1/pod-workloads?owner=Job/train&state=pending").json()["count"] == 1


def test_owners_in_a_circle_are_named_one_step_up(viewer, cluster, node):
    for one, other in (("a", "b"), ("b", "a")):
        a_workload(cluster, "Job", one, owner_kind="Job", owner_name=other, owner_uid=f"uid-Job-{other}")
    pod = make.a_pod(node, "x", owner_kind="Job", owner_name="a", owner_uid="uid-Job-a")

    assert "Job b team-a · east 1 running" in page(viewer, "/pods?by=workload").text
    for address in (f"/pods/{pod.pk}", f"/clusters/{cluster.pk}/workloads/team-a/Job/b"):
        assert viewer.get(address).status_code == 200


def test_hostile_names_are_text_and_have_pages(viewer, cluster, node):
    make.a_pod(node, "x", namespace=HOSTILE[:63], owner_name=HOSTILE, uid="x")
    some_usage(cluster, "", (HOSTILE[:63], f"Deployment/{HOSTILE}"), used=1)

    assert HOSTILE in page(viewer, "/pods?by=workload").text
    assert HOSTILE[:63] in page(viewer, f"/clusters/{cluster.pk}/namespaces/{quote(HOSTILE[:63], safe='')}").text
    for link in page(viewer, "/pods").links:
        if "/workloads/" in link:
            assert viewer.get(link).status_code == 200


def test_many_pods_of_one_job_are_one_line_and_no_more_queries(viewer, cluster):
    def cost(address):
        with CaptureQueriesContext(connection) as queries:
            assert viewer.get(address).status_code == 200
        return len(queries)

    make.a_pending_pod(cluster, "train-x")
    addresses = ["/pods?by=workload", "/pods", f"/clusters/{cluster.pk}/workloads/team-a/Job/train"]
    before = [cost(address) for address in addresses]
    pod = Pod.objects.get()
    for number in range(300):
        pod.pk, pod.uid, pod.name = None, f"u{number}", f"train-{number}"
        pod.save(force_insert=True)

    assert [cost(address) for address in addresses] == before
    assert "Job train team-a · east 301 pending 0 301" in page(viewer, "/pods?by=workload").text
    assert "all 301 pods" in page(viewer, addresses[2]).text


@pytest.mark.nightly
def test_the_lists_with_20000_pending_pods_of_one_job_stay_small(viewer, bob, cluster):
    pod = make.a_pending_pod(cluster, "train-x", created_at=NOON)
    make.a_node(cluster, "gpu-1", gpus=8)
    names = [field.name for field in Pod._meta.concrete_fields if field.name not in ("id", "state_code")]
    row = {name: getattr(pod, name) for name in names}
    Pod.objects.bulk_create(
        (Pod(**{**row, "uid": f"u{number}", "name": f"train-{number}"}) for number in range(20_000)), batch_size=1000
    )

    for address in ("/pods", "/pods?by=workload", f"/clusters/{cluster.pk}/namespaces/team-a",
                    f"/clusters/{cluster.pk}/workloads/team-a/Job/train", f"/pods/{pod.pk}"):  # fmt: skip
        answer = viewer.get(address)
        assert (answer.status_code, len(answer.content) < 120_000) == (200, True), (address, len(answer.content))
    found = calling(bob).get("/api/v1/pod-workloads").json()
    assert [each["by_state"] for each in found["workloads"]] == [{"pending": 20_001}]


def test_the_topmost_owner_has_the_hours_and_findings_of_those_below(cluster, node, bob, viewer):
    above = {"owner_kind": "JobSet", "owner_name": "llama", "owner_uid": "s"}
    a_workload(cluster, "Job", "llama-0", **above)
    make.a_pod(node, "llama-0-x", owner_kind="Job", owner_name="llama-0", owner_uid="uid-Job-llama-0")
    make.a_finding(cluster, subject="Job team-a/llama-0")
    some_usage(cluster, "", ("team-a", "JobSet/llama"), used=7)
    above, below = (f"/clusters/{cluster.pk}/workloads/team-a/{name}" for name in ("JobSet/llama", "Job/llama-0"))

    job = page(viewer, below)
    assert "GPU-hours are recorded with the topmost owner." in job.text
    assert above in job.links
    found = calling(bob).get(f"/api/v1{below}").json()
    assert (found["usage"]["total"]["gpu_hours"], found["usage_recorded_for"]) == (0, "JobSet/llama")

    answer = calling(bob).get(f"/api/v1{above}").json()

    assert (answer["usage"]["total"]["gpu_hours"], answer["usage_recorded_for"]) == (7, "")
    assert [each["title"] for each in answer["findings"]] == ["It is wrong."]
