"""Workloads whose GPU pods wait for longer than their class allows."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, Node, Observer, Pod, Workload
from health.evaluation import pending_pods
from health.evaluation.evaluation_round import evaluate_cluster
from health.evaluation.pending_pods import waiting_workloads
from health.models import Finding, PoolLimits
from health.rules.limits import Limits
from health.rules.pods_pending_long import PodsPendingLong
from tests.make import NOON, a_bookmark, a_cluster, a_finding, a_node, a_pending_pod, a_pod, a_pool

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def cluster():
    cluster = a_cluster("east")
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    for kind in ("nodes", "pods"):
        if not Bookmark.objects.filter(cluster=cluster, kind=kind).exists():
            a_bookmark(cluster, kind)
    return cluster


@pytest.fixture(autouse=True)
def always_due(monkeypatch):
    monkeypatch.setattr(pending_pods, "is_due", lambda *_, **__: True)


def looked(cluster, at=NOON) -> None:
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    evaluate_cluster(cluster, now=at)


def waits(cluster, name: str = "train-0", *, ago: timedelta = 3 * HOUR, **given) -> Pod:
    said = {
        "type": "PodScheduled",
        "status": "False",
        "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
    }
    placement = {"conditions": [said]} | given.pop("placement", {})
    return a_pending_pod(cluster, name, created_at=NOON - ago, placement=placement, **given)


def found(cluster) -> dict[str, tuple[int, float]]:
    """By workload its pods and the limit in force."""
    rows = waiting_workloads(cluster, PodsPendingLong(), now=NOON)
    return {one.name: (one.pods, rule.of_classes(one.classes).limits.warn) for rule, one in rows}


def test_many_pods_of_one_job_are_one_finding_that_ends_when_they_run(cluster):
    a_node(cluster, "gpu-1", gpus=8)
    pods = [waits(cluster, f"train-{number}", gpus=16, owner_uid="job") for number in range(40)]

    looked(cluster)

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.subject, finding.severity) == ("pods-pending-long", "Job team-a/train", "warning")
    assert finding.title == "Pods of Job team-a/train pending for over 1 h"
    evidence = {item["label"]: item["value"] for item in finding.evidence}
    assert evidence["Pending pods"] == 40
    assert evidence["GPUs requested"] == 640
    assert evidence["Nearest node"].startswith("gpu-1: lacks")
    assert finding.steps
    assert finding.page == "/pods?q=train&cluster=east&namespace=team-a"

    Pod.objects.filter(pk__in=[pod.pk for pod in pods]).update(phase="Running")
    looked(cluster, NOON + MINUTE)
    assert not Finding.objects.unresolved().exists()


def test_pods_that_wait_for_others_to_end_are_a_note(cluster):
    a_pod(a_node(cluster, "gpu-1", gpus=8), gpus=8)
    Node.objects.update(requested={"nvidia.com/gpu": 8})
    waits(cluster, gpus=8)

    looked(cluster)

    assert Finding.objects.open().get().severity == "note"


def test_the_class_of_the_pools_sets_the_limit_and_a_pools_own_replaces_it(cluster):
    serving, training = a_pool(cluster, "serving"), a_pool(cluster, "training")
    type(serving).objects.filter(pk=serving.pk).update(workload_class="inference")
    type(serving).objects.filter(pk=training.pk).update(workload_class="training")
    a_node(cluster, "gpu-1", pool=serving, labels={"team": "chat"})
    a_node(cluster, "gpu-2", pool=training, labels={"team": "lab"})
    waits(cluster, "chat-0", owner_name="chat", ago=15 * MINUTE, placement={"node_selector": {"team": "chat"}})
    waits(cluster, "lab-0", owner_name="lab", placement={"node_selector": {"team": "lab"}})
    waits(cluster, "any-0", owner_name="any")

    assert found(cluster) == {
        "Job team-a/any": (1, 120),
        "Job team-a/lab": (1, 120),
        "Job team-a/chat": (1, 10),
    }

    row = {"rule": PodsPendingLong.key, "warn_after_s": 0, "by": "ada", "at": NOON, "reason": "x"}
    PoolLimits.objects.create(pool=serving, warn=5, **row)
    assert found(cluster)["Job team-a/chat"] == (1, 5)


def test_replica_sets_of_a_deployment_wait_together_and_bare_pods_by_namespace(cluster):
    for name in ("chat-1", "chat-2"):
        row = {"kind": "ReplicaSet", "namespace": "team-a", "owner_kind": "Deployment", "owner_name": "chat"}
        Workload.objects.create(cluster=cluster, name=name, uid=name, created_at=NOON, changed_at=NOON, **row)
        waits(cluster, f"{name}-x", owner_kind="ReplicaSet", owner_name=name, owner_uid=name)
    for name in ("a", "b"):
        waits(cluster, name, owner_kind="", owner_name="")

    assert {name: pods for name, (pods, _) in found(cluster).items()} == {
        "Deployment team-a/chat": 2,
        "namespace team-a (no owner)": 2,
    }


def test_a_starting_pod_counts_unless_its_node_has_a_finding_about_it(cluster):
    node = a_node(cluster, "gpu-1")
    a_pod(node, "slow", phase="Pending", status="ContainerCreating", started_at=NOON - 3 * HOUR, owner_name="slow")
    assert len(found(cluster)) == 1

    a_finding(cluster, node=node, rule="pods-not-starting")
    assert found(cluster) == {}


def test_nothing_is_resolved_while_pods_are_not_observed(cluster):
    a_node(cluster, "gpu-1", gpus=8)
    waits(cluster, gpus=16)
    looked(cluster)
    Pod.objects.update(phase="Running")

    Bookmark.objects.filter(kind="pods").update(last_seen_at=NOON - HOUR)
    evaluate_cluster(cluster, now=NOON + MINUTE)

    assert Finding.objects.filter(rule="pods-pending-long").get().state == "open"


def test_a_pool_may_make_it_critical(cluster):
    a_node(cluster, "gpu-1", gpus=8)
    waits(cluster, gpus=16)
    ((_, workload),) = waiting_workloads(cluster, PodsPendingLong(), now=NOON)

    problem = PodsPendingLong(Limits(30, 120, whose="a pool")).evaluate(workload)

    assert (problem.severity, problem.title) == ("critical", "Pods of Job team-a/train pending for over 2 h")
