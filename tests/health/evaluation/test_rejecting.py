"""Whose pods are rejected, as the mirror of a cluster shows it: no plan has anything to do with it."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, ClusterEvent, Observer, Pod, ResourceQuota, Workload
from health.evaluation.evaluation_round import evaluate_cluster
from health.evaluation.rejected_owners import rejected_owners
from health.models import Finding
from health.rules.pods_rejected import PodsRejected
from tests.make import NOON, a_bookmark, a_cluster, a_node, a_pod
from tests.reports import causes

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
SAID = 'Error creating: pods "chat-1-x" is forbidden: exceeded quota: gpus, requested: a=1, used: a=8, limited: a=8'


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    for kind in PodsRejected.reads:
        if not Bookmark.objects.filter(cluster=cluster, kind=kind).exists():
            a_bookmark(cluster, kind)
    return cluster


def an_owner(cluster, name: str = "chat-1", **given) -> Workload:
    row = {
        "kind": "ReplicaSet", "namespace": "team-a", "owner_kind": "Deployment", "owner_name": "chat", "desired": 2,
        "resources": {"nvidia.com/gpu": 1}, "uid": f"uid-{name}", "created_at": NOON, "changed_at": NOON,
    } | given  # fmt: skip
    return Workload.objects.create(cluster=cluster, name=name, **row)


def told(cluster, owner: Workload, *, ago: timedelta = MINUTE, **given) -> None:
    row = {
        "about_kind": owner.kind, "about_namespace": owner.namespace, "about_name": owner.name, "about_uid": owner.uid,
        "reason": "FailedCreate", "is_warning": True, "message": SAID, "last_at": NOON - ago, "changed_at": NOON,
    } | given  # fmt: skip
    ClusterEvent.objects.create(cluster=cluster, uid=f"event-{ClusterEvent.objects.count()}", **row)


def looked(cluster, at) -> None:
    """While all kinds are heard."""
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    evaluate_cluster(cluster, now=at)


def rejected(cluster) -> dict[str, int]:
    return {one.name: one.lacking for one in rejected_owners(cluster, now=NOON)}


def test_an_owner_is_told_by_what_stands_above_it_with_how_many_pods_it_lacks(cluster):
    """Z31."""
    owner = an_owner(cluster)
    told(cluster, owner)
    a_pod(a_node(cluster), "chat-1-a", owner_uid=owner.uid)

    (found,) = rejected_owners(cluster, now=NOON)

    assert (found.name, found.lacking, found.message) == ("Deployment team-a/chat", 1, SAID)


@pytest.mark.parametrize(
    "given",
    [
        {"ago": timedelta(minutes=21)},
        {"reason": "SuccessfulCreate"},
        {"about_uid": "of-another"},
        {"about_kind": "DaemonSet"},
    ],
    ids=["long ago", "it was made", "of what asks for no GPU", "of the stack"],
)
def test_what_says_nothing_of_it_now(cluster, given):
    told(cluster, an_owner(cluster), **given)

    assert rejected(cluster) == {}


@pytest.mark.parametrize("desired", [0, None, 1])
def test_who_wants_no_more_than_there_are_lacks_none(cluster, desired):
    owner = an_owner(cluster, desired=desired)
    told(cluster, owner)
    a_pod(a_node(cluster), "chat-1-a", owner_uid=owner.uid)

    assert rejected(cluster) == {}


def test_a_pod_that_is_over_or_goes_is_not_there(cluster):
    owner = an_owner(cluster)
    told(cluster, owner)
    node = a_node(cluster)
    a_pod(node, "chat-1-a", owner_uid=owner.uid, phase="Failed")
    a_pod(node, "chat-1-b", owner_uid=owner.uid, deleted_at=NOON)

    assert rejected(cluster) == {"Deployment team-a/chat": 2}


def test_the_last_that_was_said_is_what_is_told(cluster):
    owner = an_owner(cluster)
    told(cluster, owner, ago=9 * MINUTE, message="The first.")
    told(cluster, owner, ago=2 * MINUTE, message="The last.")
    told(cluster, owner, ago=5 * MINUTE, message="Between.")

    assert [one.message for one in rejected_owners(cluster, now=NOON)] == ["The last."]


@pytest.mark.parametrize("number", [1, 30])
def test_it_costs_no_more_for_more(cluster, django_assert_num_queries, number):
    for at in range(number):
        told(cluster, an_owner(cluster, f"job-{at}", kind="Job", owner_kind="", owner_name=""))

    with django_assert_num_queries(3):
        assert len(rejected(cluster)) == number


def test_where_nothing_was_said_it_is_one_query(cluster, django_assert_num_queries):
    an_owner(cluster)

    with django_assert_num_queries(1):
        assert rejected(cluster) == {}


def test_a_finding_opens_after_a_while_and_ends_when_its_pods_are_made(cluster):
    owner = an_owner(cluster, desired=1)
    told(cluster, owner)
    looked(cluster, NOON)
    assert not Finding.objects.open().exists()

    looked(cluster, NOON + 6 * MINUTE)

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.subject, finding.node) == ("pods-rejected", "Deployment team-a/chat", None)
    assert causes(finding) == "ResourceQuota team-a/gpus is used up."
    assert ResourceQuota.objects.count() == Pod.objects.count() == 0  # nothing else was asked

    a_pod(a_node(cluster), "chat-1-a", owner_uid=owner.uid)
    looked(cluster, NOON + 7 * MINUTE)

    assert not Finding.objects.unresolved().exists()


def test_the_longest_names_that_kubernetes_allows_are_found_like_any_other(cluster):
    """What a database refuses would end the look at the whole cluster, and any tenant may have such names."""
    owner = an_owner(cluster, namespace="n" * 63, owner_name="d" * 253)
    told(cluster, owner)

    evaluate_cluster(cluster, now=NOON)
    looked(cluster, NOON + 6 * MINUTE)

    subject = Finding.objects.get(rule="pods-rejected").subject
    assert len(subject) == Finding._meta.get_field("subject").max_length
    assert subject.startswith(f"Deployment {'n' * 63}/ddd")


HEAD = (
    'Failed to create head Pod team-a/ray-head-x7k2p, pods "ray-head-x7k2p" is forbidden: exceeded quota: gpus, '
    "requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8"
)
UNPRIVILEGED = 'Error creating: pods "llm-worker-0" is forbidden: violates PodSecurity "restricted:latest": hostPath'
# By the reasons of kubeflow/training-operator, KubeRay, and of whatever uses the words of Kubernetes' own.
OTHERS = [
    ("PyTorchJob", "FailedCreatePod", UNPRIVILEGED, False),
    ("RayCluster", "FailedToCreateHeadPod", HEAD, True),
    ("RayCluster", "FailedToCreateWorkerPod", HEAD.replace("head Pod", "worker Pod for the cluster"), True),
    ("CloneSet", "FailedCreate", UNPRIVILEGED, False),
]


def an_other(cluster, kind: str = "PyTorchJob", reason: str = "FailedCreatePod", said: str = UNPRIVILEGED, **given):
    row = {
        "about_kind": kind, "about_namespace": "team-a", "about_name": "llm", "about_uid": "uid-llm", "reason": reason,
        "message": said, "last_at": NOON - MINUTE, "is_warning": True, "changed_at": NOON,
    } | given  # fmt: skip
    ClusterEvent.objects.create(cluster=cluster, uid=f"event-{ClusterEvent.objects.count()}", **row)


@pytest.mark.parametrize(("kind", "reason", "said", "is_of_gpus"), OTHERS)
def test_what_makes_pods_itself_is_told_without_how_many(cluster, kind, reason, said, is_of_gpus):
    an_other(cluster, kind, reason, said)

    (found,) = rejected_owners(cluster, now=NOON)

    assert (found.name, found.lacking, found.is_of_gpus) == (f"{kind} team-a/llm", None, is_of_gpus)


def test_it_is_of_gpus_where_a_pod_of_it_is_and_over_once_it_made_one(cluster):
    node = a_node(cluster)
    an_other(cluster)
    a_pod(node, "llm-worker-1", owner_uid="uid-llm", created_at=NOON - timedelta(hours=1))

    assert [one.is_of_gpus for one in rejected_owners(cluster, now=NOON)] == [True]

    a_pod(node, "llm-worker-0", owner_uid="uid-llm", created_at=NOON)

    assert rejected(cluster) == {}


@pytest.mark.parametrize(
    "given", [{"last_at": NOON - timedelta(minutes=21)}, {"is_warning": False}, {"reason": "SuccessfulCreatePod"}]
)
def test_what_says_nothing_of_an_other_now(cluster, given):
    an_other(cluster, **given)

    assert rejected(cluster) == {}


def test_an_other_is_a_finding_until_nothing_says_so_any_more(cluster):
    an_other(cluster, "RayCluster", "FailedToCreateHeadPod", HEAD)
    looked(cluster, NOON)
    an_other(cluster, "RayCluster", "FailedToCreateHeadPod", HEAD, last_at=NOON + 5 * MINUTE)
    looked(cluster, NOON + 6 * MINUTE)

    found = Finding.objects.get()
    assert (found.state, found.subject) == ("open", "RayCluster team-a/llm")
    assert found.sentence.startswith("Pods of RayCluster team-a/llm are rejected. The API server says: exceeded quota")

    looked(cluster, NOON + 40 * MINUTE)

    assert Finding.objects.get().state == "resolved"
