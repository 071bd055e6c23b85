"""Nodes counted anew after a list: what pods have and what they request, in one pass."""

import pytest
from django.db.backends.base.operations import BaseDatabaseOperations

from fleet.allocation.counters import recount
from fleet.allocation.sums import TABLES
from fleet.models import Node, NodeSums
from fleet.observer.persistence import dependent_rows
from fleet.observer.persistence.dependent_rows import count_all
from tests.fleet.documents import a_node_seen, a_pod_seen

pytestmark = pytest.mark.sqlite

COUNTED = ("gpu_allocated", "requested", "cpu_tenants_m", "memory_tenants_bytes")


def asking(number: int):
    wants = {"nvidia.com/gpu": "1", "cpu": "2", "memory": "4Gi"}
    containers = [{"name": "main", "resources": {"limits": wants, "requests": wants}}]
    return a_pod_seen(f"pod-{number}", node=f"gpu-{number % 3:03}", containers=containers)


@pytest.fixture
def listed(mirror):
    mirror.list("nodes", [a_node_seen(f"gpu-{number:03}") for number in range(3)])
    mirror.list("pods", [asking(number) for number in range(6)])
    return mirror


def rows() -> list[tuple]:
    return list(Node.objects.order_by("name").values_list(*COUNTED))


def test_it_costs_seven_queries_where_nothing_differs(listed, django_assert_num_queries):
    with django_assert_num_queries(7):
        count_all(listed.cluster.pk)


@pytest.mark.parametrize("wrong", [{"gpu_allocated": 7}, {"cpu_tenants_m": 7}, {"requested": {}, "cpu_tenants_m": 0}])
def test_what_differs_is_written_and_added_up(listed, wrong, monkeypatch):
    monkeypatch.setattr(dependent_rows, "AT_ONCE", 2)
    right = rows()
    Node.objects.update(**wrong)
    recount(listed.cluster.pk)

    count_all(listed.cluster.pk)

    assert rows() == right == [(2, {"nvidia.com/gpu": 2}, 4000, 8 * 2**30)] * 3
    assert recount(listed.cluster.pk) == 0


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_a_node_that_says_two_billion_hides_none_that_is_alike(mirror, name):
    """Their sums fit the columns of PostgreSQL, which SQLite does not mind."""
    mirror.list("nodes", [a_node_seen(f"gpu-{number}", resources={name: 2**40}, labels={}) for number in range(3)])

    assert mirror.bookmark("nodes").unread == {}
    for table in TABLES:
        (sums,) = table.objects.values()
        assert sums["nodes"] == 3
        for column in table.added_up():
            kind = table._meta.get_field(column).get_internal_type()
            least, most = BaseDatabaseOperations.integer_field_ranges[kind]
            assert least <= sums[column] <= most, column
    assert 3 * (2**31 - 1) in NodeSums.objects.values().get().values()
