"""The pods that the scheduler would preempt on a node."""

from datetime import timedelta

import pytest

from capacity.compared_nodes import index_of
from capacity.pods.victims import victims_on
from capacity.waiting_pods import explanations_of, facts_of
from fleet.models import Bookmark, DisruptionBudget, PriorityClass
from kube.resources import PRIORITY_CLASSES
from tests import make
from tests.make import NOON

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
