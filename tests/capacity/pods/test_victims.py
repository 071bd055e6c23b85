"""The pods that the scheduler would preempt on a node."""

from datetime import timedelta

import pytest

from capacity.compared_nodes import index_of
from capacity.pods.higher_priority import higher_priority_for
from capacity.pods.victims import victims_on
from capacity.waiting_pods import explanations_of, facts_of
from fleet.models import Bookmark, DisruptionBudget, Pod, PriorityClass
from kube.resources import PRIORITY_CLASSES
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def cluster():
    cluster = make.a_cluster("east")
    Bookmark.objects.create(
        cluster=cluster, kind=PRIORITY_CLASSES.name, state_since=NOON, last_seen_at=NOON, listed_at=NOON
    )
    for name, value in (("high", 1000), ("low", -5)):
        PriorityClass.objects.create(cluster=cluster, uid=name, name=name, value=value, changed_at=NOON)
    return cluster


def test_only_pods_that_have_to_end_are_victims_and_those_under_a_budget_stay_first(cluster):
    node = make.a_node(cluster, "n-1", allocatable={"nvidia.com/gpu": 8}, requested={"nvidia.com/gpu": 8})
    for number, (name, given) in enumerate(
        {
            "low": {"priority_class": "low"},
            "guarded": {"priority_class": "low", "labels": {"app": "web"}},
            "usual": {},
            "high": {"priority_class": "high"},
        }.items()
    ):
        make.a_pod(node, name, gpus=2, namespace="team-a", created_at=NOON - timedelta(hours=number), **given)
    DisruptionBudget.objects.create(
        cluster=cluster, uid="b", namespace="team-a", name="web", changed_at=NOON, disruptions_allowed=0,
        selector={"matchLabels": {"app": "web"}},
    )  # fmt: skip
    pod = make.a_pending_pod(cluster, gpus=4, placement={"priority": 1000}, created_at=NOON)

    waiting = facts_of(pod)
    (compared,) = index_of(cluster.pk, [waiting]).nodes
    found = victims_on(compared, waiting, cluster.pk)

    assert [(victim.pod.name, victim.priority, victim.budget) for victim in found] == [
        ("low", -5, ""),
        ("usual", 0, ""),
    ]
    outlook = explanations_of([pod], now=NOON)[pod.uid].preemption
    assert outlook is not None
    assert (outlook.nodes, outlook.best) == (1, compared)


@pytest.fixture
def full(cluster):
    """Returns a pod without priority that waits for a node full of equal pods."""
    node = make.a_node(cluster, "n-1", allocatable={"nvidia.com/gpu": 8}, requested={"nvidia.com/gpu": 8})
    for number in range(4):
        make.a_pod(node, f"web-{number}", gpus=2, namespace="team-b")
    return make.a_pending_pod(cluster, gpus=4, placement={"priority": 0}, created_at=NOON)


def a_class(cluster, name: str, value: int, **given):
    PriorityClass.objects.create(cluster=cluster, uid=name, name=name, value=value, changed_at=NOON, **given)


def test_the_lowest_class_that_makes_room_is_a_change_with_the_pods_that_would_end(cluster, full, now):
    a_class(cluster, "medium", 500)

    bob = make.a_user("bob", role="viewer")
    found = calling(bob).get(f"/api/v1/pods/{full.pk}/why-pending").json()["why_pending"]

    text = "Set priorityClassName to medium: the scheduler then ends 2 pods of team-b on n-1."
    assert [(each["text"], each["actor"], each["fits_now"], each["fits_later"]) for each in found["changes"]] == [
        ("Wait until other pods end.", "nobody", 0, 1),
        (text, "pod owner", 0, 1),
        ("Add nodes like these.", "cluster admin", None, None),
    ]
    higher = found["higher_priority"]
    assert (higher["name"], higher["nodes"], [each["pod"] for each in higher["victims"]]) == (
        "medium", 1, ["team-b/web-2", "team-b/web-3"],
    )  # fmt: skip
    seen = page(visiting(bob), f"/pods/{full.pk}").text
    assert text in seen
    assert "With the PriorityClass medium (500) preemption would make room on 1 node." in seen
    # Applied: the scheduler would find room with this class.
    full.placement["priority"] = 500
    assert (outlook := explanations_of([full], now=NOON)[full.uid].preemption)
    assert outlook.nodes == 1


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("system-node-critical", 2_000_001_000, {}),
        ("polite", 2000, {"preemption_policy": "Never"}),
        ("lower", -1, {}),
    ],
)
def test_a_class_that_gives_no_room_is_not_proposed(cluster, full, name, value, given):
    PriorityClass.objects.all().delete()
    a_class(cluster, name, value, **given)

    assert higher_priority_for(full) is None


def test_no_class_is_proposed_above_pods_of_the_highest_one(cluster, full):
    Pod.objects.filter(namespace="team-b").update(priority_class="high")

    assert higher_priority_for(full) is None
