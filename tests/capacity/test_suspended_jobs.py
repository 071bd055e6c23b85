"""Suspended Jobs with GPU requests: they have no pods, and are listed as demand."""

from datetime import timedelta

import pytest

from capacity.suspended_jobs import SUSPENDED, suspended_demand
from fleet.models import Bookmark, BookmarkState, QueuedWorkload, Workload, WorkloadQueue
from kube.resources import JOBS, RAY_CLUSTERS, RAY_JOBS
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def cluster():
    return make.a_cluster("east")


def a_job(cluster, name: str, pods: int | None, **given) -> Workload:
    row = {"resources": {"nvidia.com/gpu": 8}, "created_at": NOON - timedelta(hours=1), "changed_at": NOON} | given
    return Workload.objects.create(
        cluster=cluster, uid=f"uid-{name}", kind="Job", namespace="team-a", name=name, suspended_pods=pods, **row
    )


def test_suspended_jobs_are_demand_of_all_their_pods(bob, cluster, now):
    a_job(cluster, "train", 4)
    a_job(cluster, "slices", 3, resources={"nvidia.com/mig-1g.10gb": 2}, created_at=NOON)
    a_job(cluster, "running", None)
    a_job(cluster, "finished", 0)

    found = suspended_demand(bob)

    assert (found.jobs, found.pods, found.gpus) == (2, 7, 32)
    shown = [(each.job.name, each.requests, each.gpus, each.reason) for each in found.shown]
    assert shown == [("train", "8 GPUs", 32, SUSPENDED), ("slices", "2 slices 1g.10gb", None, SUSPENDED)]
    answer = calling(bob).get("/api/v1/suspended-jobs").json()
    assert (answer["gpus"], answer["shown"][0]["name"], answer["shown"][0]["queue"]) == (32, "train", None)
    text = page(visiting(bob), "/parts/suspended-jobs").text
    assert "2 Jobs with 7 pods and 32 GPUs, not scheduled yet" in text


@pytest.mark.parametrize("owner", ["uid-train", "uid-set", "uid-of-trainjob"])
def test_a_job_in_a_queue_has_its_place_as_the_reason(bob, cluster, owner):
    a_job(cluster, "train", 4, owner_kind="JobSet", owner_name="set", owner_uid="uid-set")
    above = {"owner_kind": "TrainJob", "owner_name": "llama", "owner_uid": "uid-of-trainjob"}
    Workload.objects.filter(pk=a_job(cluster, "set", None, **above).pk).update(kind="JobSet")
    mirrored = {"cluster": cluster, "changed_at": NOON, "namespace": "team-a"}
    WorkloadQueue.objects.create(**mirrored, uid="q", kind="LocalQueue", name="lq", cluster_queue="gpus")
    WorkloadQueue.objects.create(**mirrored | {"namespace": ""}, uid="cq", kind="ClusterQueue", name="gpus")
    QueuedWorkload.objects.create(
        **mirrored, uid="w", system="kueue", name="job-train", owner_uid=owner, queue="lq", created_at=NOON,
        owner_kind="TrainJob" if owner == "uid-of-trainjob" else "", owner_name="llama",
        message="insufficient unused quota for nvidia.com/gpu",
    )  # fmt: skip

    (found,) = suspended_demand(bob).shown

    assert found.reason == "Number 1 of 1 in ClusterQueue gpus. insufficient unused quota for nvidia.com/gpu"


def test_jobs_that_may_not_be_read_are_no_absence(bob, cluster):
    forbidden = {"state": BookmarkState.FORBIDDEN, "state_since": NOON}
    Bookmark.objects.update_or_create(cluster=cluster, kind=JOBS.name, defaults=forbidden)

    assert suspended_demand(bob).unread == ["east"]
    seen = page(visiting(bob), "/parts/suspended-jobs").text
    assert "Jobs (of Kubernetes, Ray or Kubeflow) are not read in east." in seen


def test_jobs_that_were_never_read_are_no_absence(bob, cluster):
    cluster.bookmarks.filter(kind=JOBS.name).delete()

    assert suspended_demand(bob).unread == ["east"]


def test_ray_jobs_that_may_not_be_read_are_no_absence(bob, cluster):
    make.a_bookmark(cluster, JOBS.name)
    make.a_bookmark(cluster, RAY_CLUSTERS.name, state="absent", listed_at=None)
    assert suspended_demand(bob).unread == []

    make.a_bookmark(cluster, RAY_JOBS.name, state="forbidden")

    assert suspended_demand(bob).unread == ["east"]


def test_a_stranger_sees_none(cluster):
    a_job(cluster, "train", 4)

    assert suspended_demand(make.a_user("eve", role="")).jobs == 0


def a_group(cluster, name: str, **given) -> QueuedWorkload:
    row = {"requests": {"nvidia.com/gpu": "3", "cpu": "4"}, "queue": "a800", "is_waiting": True, "owner_name": name}
    row |= {
        "system": "volcano",
        "reason": "NotEnoughResources",
        "message": "queue resource quota insufficient",
        "owner_uid": f"job-{name}",
    }
    return QueuedWorkload.objects.create(
        cluster=cluster, uid=f"group-{name}", namespace="team-a", name=name, changed_at=NOON,
        created_at=NOON - timedelta(hours=1), **row | given,
    )  # fmt: skip


def test_pod_groups_that_wait_without_pods_are_demand(bob, cluster, now):
    a_group(cluster, "llama")
    a_group(cluster, "scheduled", is_waiting=False)
    a_group(cluster, "cpu-only", requests={"cpu": "4"})
    a_group(cluster, "of-kai", system="kai")
    make.a_pending_pod(cluster, "begun-0", owner_kind="Job", owner_uid=a_group(cluster, "begun").owner_uid)

    found = calling(bob).get("/api/v1/suspended-jobs").json()

    assert [(row["name"], row["requests"], row["queue"]) for row in found["shown_pod_groups"]] == [
        ("llama", "3 GPUs", "a800")
    ]
    assert "queue resource quota insufficient" in found["shown_pod_groups"][0]["reason"]
    seen = page(visiting(bob), "/parts/suspended-jobs").text
    assert "1 PodGroup of Volcano waits without pods" in seen
    eve = make.a_user("eve", role="viewer", on=make.a_pool(cluster, "h200"))
    assert calling(eve).get("/api/v1/suspended-jobs").json()["pod_groups"] == 0
