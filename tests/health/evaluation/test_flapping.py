"""A node that is never away for long, and away again and again, is found by its timeline."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, NodeEvent, Observer
from health.evaluation import evaluation_round
from health.models import Finding, PoolLimits
from tests.make import NOON, a_cluster, a_node, a_pool
from tests.reports import told

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    return cluster


def fall_and_rise(node, at, *, is_kubelet_silent=True):
    away = None if is_kubelet_silent else False
    for was, now in ((True, away), (away, True)):
        detail = {"column": "is_ready", "was": was, "is": now}
        NodeEvent.objects.create(
            cluster=node.cluster, node_uid=node.uid, node_name=node.name, at=at, kind="ready", sentence="…",
            detail=detail,
        )  # fmt: skip
    node.ready_since = at
    node.save(update_fields=["ready_since"])


def open_at(cluster, at):
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=at)
    evaluation_round.evaluate_cluster(cluster, now=at)
    return list(Finding.objects.open().values_list("rule", "subject"))


@pytest.mark.parametrize("is_kubelet_silent", [True, False])
def test_three_short_falls_in_half_an_hour_are_told_at_once(cluster, is_kubelet_silent):
    node = a_node(cluster, "gpu-001")
    for minute in (0, 10):
        fall_and_rise(node, NOON + minute * MINUTE, is_kubelet_silent=is_kubelet_silent)
    assert open_at(cluster, NOON + 11 * MINUTE) == []

    fall_and_rise(node, NOON + 20 * MINUTE, is_kubelet_silent=is_kubelet_silent)

    assert open_at(cluster, NOON + 20 * MINUTE) == [("node-flapping", "node gpu-001")]


def test_it_is_over_when_the_falls_are_half_an_hour_ago(cluster):
    node = a_node(cluster, "gpu-001")
    for minute in (0, 10, 20):
        fall_and_rise(node, NOON + minute * MINUTE)
    open_at(cluster, NOON + 21 * MINUTE)

    assert open_at(cluster, NOON + 31 * MINUTE) == []


def test_by_the_limits_of_its_pool_fewer_falls_are_told_and_many_are_critical(cluster):
    pool = a_pool(cluster, "fragile")
    node, other = a_node(cluster, "gpu-001", pool=pool), a_node(cluster, "gpu-002")
    PoolLimits.objects.create(
        pool=pool, rule="node-flapping", warn=2, critical=4, warn_after_s=60, by="ada", at=NOON, reason="x"
    )
    for minute in (0, 1):
        fall_and_rise(node, NOON + minute * MINUTE)
        fall_and_rise(other, NOON + minute * MINUTE)

    assert open_at(cluster, NOON + 2 * MINUTE) == []
    assert open_at(cluster, NOON + 3 * MINUTE) == [("node-flapping", "node gpu-001")]
    warned = Finding.objects.get()
    for minute in (4, 5):
        fall_and_rise(node, NOON + minute * MINUTE)
    open_at(cluster, NOON + 6 * MINUTE)

    assert warned.severity == "warning"
    assert "Limit for a warning: 2 times within half an hour" in told(warned)
    assert told(warned).endswith("Limits set by: a pool")
    assert Finding.objects.get().severity == "critical"


def test_another_nodes_falls_are_not_its(cluster):
    for number in (1, 2, 3):
        fall_and_rise(a_node(cluster, f"gpu-{number}"), NOON)

    assert open_at(cluster, NOON + MINUTE) == []
