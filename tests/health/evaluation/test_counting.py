"""How many findings a node has, and how many of them are critical: kept on it, and told when either changed."""

from datetime import timedelta

import pytest

from fleet.map_cells.cell import CRITICAL
from fleet.models import MapChunk, Node
from health.evaluation.finding_counts import count_on_nodes
from health.inbox import acts, rule_mutes
from health.lifecycle import FindingState
from tests.make import NOON, a_cluster, a_finding, a_node

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return a_cluster()


@pytest.fixture
def node(cluster):
    return a_node(cluster, "gpu-001")


@pytest.fixture
def hot(cluster, node):
    finding = a_finding(cluster, "GPU 3 of gpu-001", node=node, rule="gpu-hot", severity="critical")
    count_on_nodes(cluster)
    return finding


def numbers() -> tuple[int, int]:
    (said,) = Node.objects.values_list("unresolved", "critical")
    return said


def is_critical_on_the_map() -> bool:
    return bool(bytes(MapChunk.objects.get().states)[0] & CRITICAL)


def test_of_those_of_a_node_the_critical_ones_are_counted_beside_all(cluster, node):
    for subject, severity in enumerate(("critical", "critical", "warning", "note")):
        a_finding(cluster, f"gpu-001 {subject}", node=node, severity=severity)

    assert count_on_nodes(cluster) == [node.pk]

    assert numbers() == (3, 2)
    assert is_critical_on_the_map()


def test_a_finding_that_only_became_worse_or_better_is_told_of_its_node(cluster, node, hot):
    assert (numbers(), is_critical_on_the_map()) == ((1, 1), True)
    assert count_on_nodes(cluster) == []

    type(hot).objects.update(severity="warning")

    assert count_on_nodes(cluster) == [node.pk]
    assert (numbers(), is_critical_on_the_map()) == ((1, 0), False)


def test_one_that_is_being_confirmed_counts_as_it_does_among_all(cluster, node):
    a_finding(cluster, node=node, severity="critical", state=FindingState.CONFIRMING, opened_at=None)

    count_on_nodes(cluster)

    assert numbers() == (1, 1)


def test_one_that_somebody_looks_after_still_counts(cluster, hot):
    acts.acknowledge(hot, actor="ada", now=NOON + timedelta(minutes=1))
    count_on_nodes(cluster)

    assert (numbers(), is_critical_on_the_map()) == ((1, 1), True)


def test_one_that_is_muted_does_not(cluster, hot):
    until = NOON + timedelta(days=1)

    rule_mutes.mute(rule_mutes.scoped(hot, "finding"), actor="ada", reason="Known.", until=until, now=NOON)

    assert (numbers(), is_critical_on_the_map()) == ((0, 0), False)


@pytest.mark.parametrize(
    "given", [{"state": FindingState.RESOLVED, "resolved_at": NOON}, {"is_shadow": True}], ids=["resolved", "on trial"]
)
def test_one_that_is_over_or_of_a_rule_on_trial_does_not(cluster, hot, given):
    type(hot).objects.update(**given)
    count_on_nodes(cluster)

    assert (numbers(), is_critical_on_the_map()) == ((0, 0), False)


def test_one_that_is_listed_under_another_of_its_node_does_not(cluster, node, hot):
    a_finding(cluster, node=node, severity="critical", parent=hot)
    count_on_nodes(cluster)

    assert numbers() == (1, 1)
