"""The room for pods that wait: nodes with equal room are one row, which is remembered for a few seconds."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from health.stack import pods as stack_pods
from health.stack.pods import KEPT_S, NodesWithRoom, offers_of
from tests import make

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
GPU = "nvidia.com/gpu"


@pytest.fixture
def cluster():
    cluster = make.a_cluster("east")
    for name, taken in (("a", 6), ("b", 6), ("c", 8), ("full", 9)):
        make.a_node(cluster, name, allocatable={GPU: 8}, requested={GPU: taken})
    make.a_node(cluster, "idle", allocatable={GPU: 8}, requested={})
    make.a_node(cluster, "cordoned", allocatable={GPU: 8}, requested={}, is_unschedulable=True)
    make.a_node(cluster, "other", allocatable={"nvidia.com/mig-1g.10gb": 7}, requested={})
    return cluster


def test_nodes_with_equal_room_are_one_row(cluster):
    assert sorted(offers_of(cluster.pk, GPU)) == [
        NodesWithRoom(8, 0, 1, "c"), NodesWithRoom(8, 0, 1, "full"), NodesWithRoom(8, 2, 2, "b"),
        NodesWithRoom(8, 8, 1, "idle"),
    ]  # fmt: skip


def test_pages_that_ask_together_read_it_once(cluster, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(stack_pods.time, "monotonic", lambda: now[0])
    found = []
    with CaptureQueriesContext(connection) as queries:
        for now[0] in (1000.0, 1000.0 + KEPT_S - 0.1, 1000.0 + KEPT_S):
            found.append(len(queries))
            assert offers_of(cluster.pk, GPU)
    assert (found, len(queries)) == ([0, 1, 1], 2)
