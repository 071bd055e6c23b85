"""The place of a waiting pod in its queue: on its page, and in why it waits."""

from datetime import timedelta
from typing import Any

import pytest

from capacity.waiting_pods import explanations_of
from fleet.models import ClusterEvent, QueuedWorkload, WorkloadQueue
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
GATED = {"gates": ["kueue.x-k8s.io/admission"]}
NEEDS = "insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed"
KINDS = ("workloads.kueue.x-k8s.io", "clusterqueues.kueue.x-k8s.io")


@pytest.fixture
def cluster():
    cluster = make.a_cluster("east")
    for kind in KINDS:
        make.a_bookmark(cluster, kind)
    a_queue(cluster, "ClusterQueue", "gpus", quotas=[a_quota(64, 64)])
    a_queue(cluster, "LocalQueue", "team-a", namespace="team-a", cluster_queue="gpus")
    return cluster


def a_quota(nominal: int, reserved: int) -> dict[str, Any]:
    row = {"flavor": "h100", "resource": "nvidia.com/gpu", "borrowing": None, "borrowed": "0"}
    return row | {"nominal": str(nominal), "reserved": str(reserved)}


def a_queue(cluster, kind: str, name: str, **given: Any) -> WorkloadQueue:
    return WorkloadQueue.objects.create(
        cluster=cluster, kind=kind, name=name, uid=f"{kind}-{name}", changed_at=NOON, **given
    )


def a_workload(cluster, name: str, *, ago: int = 1, **given: Any) -> QueuedWorkload:
    row: dict[str, Any] = {"system": "kueue", "queue": "team-a", "reason": "Pending", "message": NEEDS} | given
    at = NOON - timedelta(hours=ago)
    return QueuedWorkload.objects.create(
        cluster=cluster, namespace="team-a", name=name, uid=name, created_at=at, changed_at=NOON, **row
    )


def why(pod):
    return explanations_of([pod], now=NOON)[pod.uid]


def test_a_gated_pod_has_its_position_quota_and_the_queues_words(cluster):
    pod = make.a_pending_pod(cluster, "train", placement=GATED)
    a_workload(cluster, "pod-train", owner_uid=pod.uid, requests={"nvidia.com/gpu": "8"})
    a_workload(cluster, "older", ago=5)
    a_workload(cluster, "urgent", ago=0, priority=1000)
    a_workload(cluster, "younger", ago=0)
    a_workload(cluster, "admitted", ago=9, admitted_to="gpus", is_waiting=False)

    found = why(pod)

    assert (found.key, found.title) == ("queued", "Number 3 of 4 in ClusterQueue gpus")
    assert (found.summary, found.decided_by) == (NEEDS, "ClusterQueue gpus")
    assert found.is_waiting
    text = page(visiting(make.a_user("bob", role="viewer")), f"/pods/{pod.pk}").text
    assert "64 of 64 nvidia.com/gpu reserved in flavor h100" in text
    assert "3 of 4, by priority and age" in text
    assert NEEDS in text


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ({"is_active": False}, "Workload team-a/w is deactivated"),
        ({"reason": "ExceedsMaxQuota"}, "ClusterQueue gpus never admits this workload as it is"),
        (
            {"message": "requests (0) + (128) > maximum capacity (64)"},
            "ClusterQueue gpus never admits this workload as it is",
        ),
        (
            {"message": "couldn't assign flavors to pod set job: resource cpu unavailable in ClusterQueue"},
            "ClusterQueue gpus never admits this workload as it is",
        ),
        (
            {"admitted_to": "gpus", "reason": "UnsatisfiedAdmissionChecks"},
            "Has its quota, and waits for an admission check",
        ),
        (
            {"queue": "gone", "message": "LocalQueue gone doesn't exist"},
            "LocalQueue gone never admits this workload as it is",
        ),
    ],
)
def test_a_queue_that_waits_is_told_from_one_that_refuses(cluster, given, title):
    pod = make.a_pending_pod(cluster, "train", placement=GATED)
    a_workload(cluster, "w", owner_uid=pod.uid, **given)

    assert why(pod).title == title


@pytest.mark.parametrize(
    ("message", "key", "step"),
    [
        (
            "couldn't assign flavors to pod set main: no topology domains at level: oci/rdma.local_block_id",
            "queue_refuses",
            "Compare the nodes of the flavor with all levels",
        ),
        ("resource in cluster is overused", "queued", "Delete PodGroups of jobs that are over"),
        ("couldn't assign flavors: insufficient unused quota for nvidia.com/gpu", "queued", "Wait until workloads"),
    ],
)
def test_a_cause_that_the_queue_names_comes_before_its_place(cluster, message, key, step):
    pod = make.a_pending_pod(cluster, "train", placement=GATED)
    a_workload(cluster, "w", owner_uid=pod.uid, message=message)

    found = why(pod)

    assert (found.key, found.changes[0].text.startswith(step)) == (key, True)
    assert found.queue.message == message


def test_a_stopped_queue_and_a_strict_head_are_named(cluster):
    pod = make.a_pending_pod(cluster, "train", placement=GATED, labels={"kueue.x-k8s.io/pod-group-name": "group"})
    a_workload(cluster, "group")
    a_workload(cluster, "first", ago=5)
    WorkloadQueue.objects.filter(kind="ClusterQueue").update(strategy="StrictFIFO")

    assert why(pod).queue.head == "team-a/first"

    WorkloadQueue.objects.filter(kind="ClusterQueue").update(trouble="Stopped: is stopped")
    assert why(pod).title == "ClusterQueue gpus admits nothing"
    assert not why(pod).is_waiting


@pytest.mark.parametrize(("state", "word"), [("absent", "not installed"), ("forbidden", "not permitted")])
def test_what_is_not_read_is_named_and_never_guessed(cluster, state, word):
    cluster.bookmarks.filter(kind=KINDS[0]).update(state=state)
    pod = make.a_pending_pod(cluster, "train", placement=GATED)
    a_workload(cluster, "w", owner_uid=pod.uid)

    found = why(pod)

    assert found.key == "gated"
    assert found.not_checked == [f"queues and quotas of Kueue (Workloads of Kueue: {word})"]


def test_a_pod_of_volcano_has_the_words_of_its_pod_group(cluster):
    make.a_bookmark(cluster, "podgroups.scheduling.volcano.sh")
    pod = make.a_pending_pod(cluster, "train", placement={"scheduler": "volcano"}, owner_uid="job")
    a_workload(
        cluster, "pg", system="volcano", queue="gold", owner_uid="job", reason="NotEnoughResources", message="8/8 tasks"
    )

    found = why(pod)

    assert (found.title, found.summary) == ("Waits in queue gold of Volcano", "8/8 tasks")


def test_a_scheduler_is_there_once_it_has_written_an_event_about_any_pod(cluster):
    make.a_node(cluster)
    pod = make.a_pending_pod(cluster, "train", placement={"scheduler": "own"}, created_at=NOON)
    assert why(pod).key == "no_scheduler"

    row = {"reason": "Scheduled", "source": "own", "about_uid": "other", "changed_at": NOON}
    ClusterEvent.objects.create(cluster=cluster, uid="e", **row)

    assert why(pod).key == "fits"


def test_pods_without_a_queue_cost_no_query(cluster, django_assert_max_num_queries):
    pod = make.a_pending_pod(cluster, "train")
    with django_assert_max_num_queries(7):
        why(pod)
