from datetime import timedelta

import pytest

from fleet import findings
from fleet.models import Bookmark, Finding, Node, NodeEvent, Observer, Workload
from tests.make import NOON, a_bookmark, a_cluster, a_node, a_pool, an_operator

GPU = "nvidia.com/gpu"
MISSING = "allocatable-below-expected"
pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    cluster = a_cluster()
    Observer.objects.create(cluster=cluster, lease_until=NOON)
    return cluster


def a_sick_node(cluster, **given):
    counts = {"allocatable": {GPU: 7}, "capacity": {GPU: 8}, "expected": {GPU: 8}}
    return a_node(cluster, "gpu-001", **counts | given)


def heard(cluster, at):
    Bookmark.objects.filter(cluster=cluster).update(heard_at=at)


def test_a_finding_opens_only_when_it_lasts(cluster):
    node = a_sick_node(cluster)

    findings.look(cluster, now=NOON)
    assert not Finding.objects.open().exists()
    findings.look(cluster, now=NOON + timedelta(seconds=70))

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.subject, finding.node, finding.since) == (MISSING, "node gpu-001", node, NOON)
    assert NodeEvent.objects.get(kind="finding").sentence.startswith("GPUs missing: gpu-001 lacks 1 GPU")


def test_what_passes_at_once_leaves_no_trace(cluster):
    a_sick_node(cluster)
    findings.look(cluster, now=NOON)
    Node.objects.update(allocatable={GPU: 8})

    findings.look(cluster, now=NOON + timedelta(seconds=10))

    assert not Finding.objects.exists()


def test_a_finding_is_resolved_and_opens_again_as_another(cluster):
    a_sick_node(cluster)
    findings.look(cluster, now=NOON)
    findings.look(cluster, now=NOON + timedelta(seconds=70))
    Node.objects.update(allocatable={GPU: 8})
    findings.look(cluster, now=NOON + timedelta(seconds=80))
    Node.objects.update(allocatable={GPU: 6})
    findings.look(cluster, now=NOON + timedelta(seconds=85))

    assert Finding.objects.exclude(resolved_at=None).get().resolved_at == NOON + timedelta(seconds=80)
    assert Finding.objects.get(resolved_at=None).opened_at is None
    assert NodeEvent.objects.filter(sentence__startswith="Resolved").count() == 1


def test_nothing_opens_or_is_resolved_while_the_cluster_is_not_seen(cluster):
    a_sick_node(cluster)
    findings.look(cluster, now=NOON)
    findings.look(cluster, now=NOON + timedelta(seconds=70))
    Node.objects.update(allocatable={GPU: 8})

    findings.look(cluster, now=NOON + timedelta(minutes=10))

    assert Finding.objects.open().count() == 1


def test_a_look_that_finds_nothing_new_writes_nothing(cluster):
    a_sick_node(cluster)
    findings.look(cluster, now=NOON)
    findings.look(cluster, now=NOON + timedelta(seconds=70))

    told = findings.look(cluster, now=NOON + timedelta(seconds=80))

    assert told == 0
    assert Finding.objects.get().updated_at == NOON + timedelta(seconds=70)


def test_the_class_of_the_pool_makes_sharing_a_finding(cluster):
    pool = a_pool(cluster, workload_class="inference")
    a_node(
        cluster,
        pool=pool,
        sharing="time-slicing",
        sharing_replicas=4,
        allocatable={GPU: 32},
        expected={GPU: 32},
        requested={GPU: 3},
    )

    findings.look(cluster, now=NOON)
    heard(cluster, NOON + timedelta(minutes=6))
    findings.look(cluster, now=NOON + timedelta(minutes=6))

    assert Finding.objects.open().get().rule == "inference-on-time-slices"


def test_a_lag_is_found_at_once_even_where_nodes_are_stale(cluster):
    Observer.objects.update(lag_ms=8_000, behind_since=NOON)

    findings.look(cluster, now=NOON + timedelta(hours=1))

    assert Finding.objects.open().get().subject == "quarterdeck"


def test_an_operator_that_stays_down_is_a_finding_and_one_that_is_not_seen_any_more_stays_one(cluster):
    a_bookmark(cluster, "deployments.apps")
    an_operator(cluster, ready=0)
    findings.look(cluster, now=NOON)
    heard(cluster, NOON + timedelta(minutes=2))
    findings.look(cluster, now=NOON + timedelta(minutes=2))

    finding = Finding.objects.open().get()
    assert (finding.rule, finding.subject, finding.node) == ("operator-down", "GPU operator", None)

    Workload.objects.update(ready=1)
    findings.look(cluster, now=NOON + timedelta(hours=1))
    assert Finding.objects.open().exists()
    heard(cluster, NOON + timedelta(hours=1))
    findings.look(cluster, now=NOON + timedelta(hours=1))
    assert not Finding.objects.open().exists()


def test_a_look_costs_the_same_for_one_node_and_for_fifty(cluster, django_assert_num_queries):
    for number in range(50):
        a_node(cluster, f"gpu-{number:03}", allocatable={GPU: 8}, expected={GPU: 8})

    with django_assert_num_queries(9):
        findings.look(cluster, now=NOON)
