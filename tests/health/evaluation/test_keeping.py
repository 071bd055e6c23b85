"""Why a driver upgrade failed or does not end: what pods say of it, and what the rows do."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, DisruptionBudget, Node, Observer
from gpu.evictions import read_policy
from health.evaluation import evaluation_round, upgrade_blockers
from health.evaluation.upgrade_blockers import PodThere, find_blockers, kept_by_pods
from health.models import Finding
from tests.make import NOON, a_cluster, a_driver_object, a_node, a_pod

MINUTE = timedelta(minutes=1)
WAITS = {"waitForCompletion": {"podSelector": "job=nightly"}}
JOB = PodThere("team-a/train", {"job": "nightly"}, "Job")
STEADY = PodThere("team-a/chat", {"app": "chat"}, "ReplicaSet")


def said(state: str, *pods: PodThere, **policy) -> str:
    blocker = kept_by_pods(state, read_policy(policy), pods)
    return " ".join((*blocker.causes, *blocker.steps))


@pytest.mark.parametrize(
    ("pods", "begins"),
    [
        (
            (JOB, STEADY),
            "The operator waits for team-a/train to end, without a limit (upgradePolicy.waitForCompletion).",
        ),
        ((STEADY,), "The operator waits for pods that are job=nightly to end, without a limit"),
    ],
)
def test_who_is_waited_for_is_named(pods, begins):
    assert said("wait-for-jobs-required", *pods, **WAITS).startswith(begins)


def test_who_is_waited_for_for_a_while_has_that_while():
    policy = {"waitForCompletion": {"podSelector": "job=nightly", "timeoutSeconds": 3600}}

    assert "for 1 h at most" in said("wait-for-jobs-required", JOB, **policy)


def test_a_selector_that_cannot_be_read_says_nothing():
    assert said("wait-for-jobs-required", JOB, waitForCompletion={"podSelector": "job in ("}) == ""


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (PodThere("team-a/alone"), "team-a/alone has no controller (podDeletion.force is off)."),
        (PodThere("team-a/files", owner_kind="Job", has_empty_dir=True), "team-a/files keeps files on the node"),
        (PodThere("team-a/agent", owner_kind="DaemonSet"), "team-a/agent requests GPUs and is a DaemonSet's."),
        (
            PodThere("team-a/last", owner_kind="ReplicaSet", budget="team-a/one"),
            "PodDisruptionBudget team-a/one allows no eviction of team-a/last.",
        ),
    ],
)
@pytest.mark.parametrize("state", ["pod-deletion-required", "drain-required", "upgrade-failed"])
def test_a_pod_that_may_not_go_is_named_with_why(state, pod, says):
    assert says in said(state, pod, STEADY)
    assert "team-a/chat" not in said(state, pod, STEADY)


def test_a_budget_comes_first_with_each_pod_that_it_keeps():
    kept = [PodThere(name, owner_kind="ReplicaSet", budget="team-a/one") for name in ("team-a/b", "team-a/a")]

    causes = kept_by_pods("upgrade-failed", read_policy({}), [PodThere("team-a/alone"), *kept]).causes

    assert causes == (
        "PodDisruptionBudget team-a/one allows no eviction of team-a/a, team-a/b.",
        "team-a/alone has no controller (podDeletion.force is off).",
    )


def test_several_are_named_together():
    assert "a, b have no controller" in said("upgrade-failed", PodThere("a"), PodThere("b"))


def test_what_the_policy_allows_keeps_nothing():
    pods = PodThere("a"), PodThere("b", owner_kind="Job", has_empty_dir=True)

    assert said("upgrade-failed", *pods, podDeletion={"force": True, "deleteEmptyDir": True}) == ""


@pytest.mark.parametrize("state", ["pod-restart-required", "validation-required", "uncordon-required"])
def test_pods_keep_nothing_once_they_are_gone(state):
    assert said(state, PodThere("a")) == ""


@pytest.fixture
def cluster(db):
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return cluster


def looked(cluster, minutes: float) -> None:
    at = NOON + minutes * MINUTE
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    evaluation_round.evaluate_cluster(cluster, now=at)


def a_budget(cluster, *, allowed: int) -> None:
    DisruptionBudget.objects.create(
        cluster=cluster, uid="uid-of-budget", namespace="team-a", name="one", disruptions_allowed=allowed,
        selector={"matchLabels": {"app": "chat"}}, changed_at=NOON,
    )  # fmt: skip


def a_held_pod(node, name: str = "chat", **given):
    given = {"owner_kind": "ReplicaSet", "labels": {"app": "chat"}, "resources": {"nvidia.com/gpu": 1}} | given
    return a_pod(node, name, **given)


@pytest.mark.parametrize(("allowed", "is_told"), [(0, True), (1, False)])
def test_a_budget_that_lets_none_of_its_pods_go_is_found_in_rows(cluster, allowed, is_told):
    node = a_node(cluster, "gpu-1", upgrade_state="upgrade-failed")
    a_held_pod(node)
    a_budget(cluster, allowed=allowed)

    why = find_blockers(cluster, now=NOON)

    assert ("PodDisruptionBudget team-a/one allows no eviction of team-a/chat" in str(why.get(node.pk))) is is_told


def test_the_policy_is_that_of_the_nodes_own_driver_before_the_cluster_policys(cluster):
    force = {"podDeletion": {"force": True}}
    a_driver_object(cluster, "h200", upgrade_policy=force)
    a_driver_object(cluster, "cluster-policy", kind="ClusterPolicy", upgrade_policy={})
    mine = a_node(cluster, "gpu-1", upgrade_state="upgrade-failed", driver_owner="h200")
    other = a_node(cluster, "gpu-2", upgrade_state="upgrade-failed", driver_owner="h100")
    for node in (mine, other):
        a_held_pod(node, f"alone-{node.name}", owner_kind="")

    why = find_blockers(cluster, now=NOON)

    assert list(why) == [other.pk]
    assert "team-a/alone-gpu-2 has no controller" in why[other.pk].causes[0]


def test_a_stuck_upgrade_says_who_keeps_it_and_where_it_stands_now(cluster):
    a_driver_object(cluster, "h200", upgrade_policy=WAITS)
    node = a_node(cluster, "gpu-1", upgrade_state="wait-for-jobs-required", driver_owner="h200")
    a_held_pod(node, "train", labels={"job": "nightly"})

    for minute in (0, 30):
        looked(cluster, minute)
    first = Finding.objects.get(rule="upgrade-stuck")
    Node.objects.update(upgrade_state="pod-deletion-required")
    looked(cluster, 31)
    then = Finding.objects.get(rule="upgrade-stuck")

    assert first.causes[0].startswith("The operator waits for team-a/train to end, without a limit")
    assert then.summary == "Its upgrade state is pod-deletion-required."
    assert (then.pk, then.opened_at) == (first.pk, first.opened_at)


@pytest.mark.nightly
def test_of_many_that_failed_each_is_told_why(cluster, monkeypatch: pytest.MonkeyPatch):
    """A look asks a few. What it found of them stays, and the others have their turn."""
    monkeypatch.setattr(upgrade_blockers, "ASKED_WHY", 2)
    for number in range(7):
        node = a_node(cluster, f"gpu-{number}", upgrade_state="upgrade-failed")
        a_held_pod(node, f"alone-{number}", owner_kind="")

    for minute in range(40):
        looked(cluster, minute)

    why = {finding.subject: " ".join(finding.causes) for finding in Finding.objects.filter(rule="upgrade-failed")}
    assert len(why) == 7
    assert all(f"team-a/alone-{name[-1]} has no controller" in cause for name, cause in why.items())


def test_what_kept_it_in_another_state_is_not_what_keeps_it_now(cluster, monkeypatch: pytest.MonkeyPatch):
    a_driver_object(cluster, "h200", upgrade_policy=WAITS)
    node = a_node(cluster, "gpu-1", upgrade_state="wait-for-jobs-required", driver_owner="h200")
    a_held_pod(node, "train", labels={"job": "nightly"})
    for minute in (0, 30, 31):
        looked(cluster, minute)
    monkeypatch.setattr(upgrade_blockers, "ASKED_WHY", 0)

    kept = find_blockers(cluster, now=NOON + 32 * MINUTE)
    Node.objects.update(upgrade_state="validation-required")

    assert "team-a/train" in kept[node.pk].causes[0]
    assert find_blockers(cluster, now=NOON + 32 * MINUTE) == {}
