"""The nodes with which waiting pods are compared: read once for each flush of the observer."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from capacity import compared_nodes
from capacity.compared_nodes import SHARED_S, index_of
from capacity.waiting_pods import explanations_of
from fleet.models import Node, Observer
from tests import conftest, make
from tests.make import NOON

pytestmark = pytest.mark.django_db


def test_nodes_are_read_again_once_the_observer_has_written(monkeypatch):
    monkeypatch.setattr(conftest, "changes_fleet", lambda _: False)  # which would forget them at every write
    cluster = make.a_cluster("east")
    Observer.objects.create(cluster=cluster, lease_until=NOON, epoch=1, batch=7)
    make.a_node(cluster, "n-1")
    before = index_of(cluster.pk, [])
    Node.objects.update(is_unschedulable=True)
    with CaptureQueriesContext(connection) as queries:
        assert index_of(cluster.pk, []) is before
    assert len(queries) == 1
    Observer.keep(cluster.pk, epoch=1, now=NOON, flushed=True)
    assert index_of(cluster.pk, []) is before  # for all pages that ask at once
    ((key, kept),) = compared_nodes._kept.items()
    monkeypatch.setitem(compared_nodes._kept, key, kept._replace(at=kept.at - SHARED_S))
    assert index_of(cluster.pk, []).cordoned == 1


def test_a_node_takes_as_many_pods_as_its_kubelet_allows():
    cluster = make.a_cluster("east")
    row = {"allocatable": {"nvidia.com/gpu": 8}, "cpu_allocatable_m": 64_000, "memory_allocatable_bytes": 2**40}
    make.a_node(cluster, "full", pods_allocatable=110, pods_bound=110, **row)
    said = {"type": "PodScheduled", "message": "0/1 nodes are available: 1 Too many pods."}
    pod = make.a_pending_pod(cluster, "train-x", placement={"conditions": [said]})

    assert explanations_of([pod], now=NOON)[pod.uid].key == "too_many_pods"

    Node.objects.update(pods_allocatable=None)
    compared_nodes.forget_indexes()
    found = explanations_of([pod], now=NOON)[pod.uid]
    assert (found.key, "pods per node" in found.not_checked[0]) == ("scheduler", True)


def test_products_are_read_for_a_pod_that_requests_a_mig_profile():
    cluster = make.a_cluster("east")
    slices = {"nvidia.com/mig-3g.40gb": 2}
    make.a_node(cluster, allocatable=slices, labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED"})
    pod = make.a_pending_pod(
        cluster, resources={"nvidia.com/mig-4g.71gb": 1}, placement={"tolerations": []}, created_at=NOON
    )

    found = explanations_of([pod], now=NOON)[pod.uid]

    assert "NVIDIA-A100-SXM4-80GB can offer 4g.40gb." in found.summary


def test_shares_of_gpus_are_told_from_gpus():
    cluster = make.a_cluster("east")
    make.a_node(cluster, "whole")
    make.a_node(cluster, "shared", layout="gpu=whole/time-slicing*4")
    make.a_node(cluster, "sliced", layout="gpu=1g.10gb")

    index = index_of(cluster.pk, [])

    assert index.named(index.in_parts("nvidia.com/gpu")) == "shared, sliced"
