"""A rolling update that waits for the GPUs of its own older pods."""

from datetime import timedelta

import pytest

from capacity.waiting_pods import explanations_of
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db
FULL = {"type": "PodScheduled", "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}


def a_template(number: str) -> dict[str, object]:
    return {"owner_kind": "ReplicaSet", "owner_name": f"web-{number}", "labels": {"pod-template-hash": number}}


@pytest.mark.parametrize(
    ("older", "key"),
    [
        (a_template("aa1"), "rolling_update"),
        (a_template("bb2"), "no_room"),  # a pod of the same template
        (a_template("aa1") | {"deleted_at": NOON}, "no_room"),
        (a_template("aa1") | {"created_at": NOON}, "no_room"),
        (a_template("aa1") | {"namespace": "team-b"}, "no_room"),
        (a_template("aa1") | {"owner_name": "chat-aa1"}, "no_room"),
        (a_template("aa1") | {"gpus": 0, "is_tenant": True}, "no_room"),
    ],
)
def test_older_pods_of_the_deployment_come_first(older, key):
    cluster = make.a_cluster("east")
    make.a_pod(a_full_node(cluster, "n1", 1), "old", **older)
    placement = {"conditions": [FULL], "tolerations": []}
    pod = make.a_pending_pod(cluster, placement=placement, created_at=NOON - timedelta(minutes=5), **a_template("bb2"))

    found = explanations_of([pod], now=NOON)[pod.uid]

    assert found.key == key
    if key == "rolling_update":
        assert "maxUnavailable" in found.changes[0].text
        assert not found.is_waiting, "it does not start by itself"


def a_full_node(cluster, name: str, gpus: int, **given):
    amounts = {"nvidia.com/gpu": gpus}
    return make.a_node(
        cluster, name, allocatable=amounts, requested=amounts, cpu_allocatable_m=64_000,
        memory_allocatable_bytes=2**40, **given,
    )  # fmt: skip


def test_older_pods_on_nodes_that_do_not_qualify_are_no_reason():
    cluster = make.a_cluster("east")
    make.a_pod(a_full_node(cluster, "a100", 1), "old", **a_template("aa1"))
    a_full_node(cluster, "h100", 1, labels={"pool": "h100"})
    said = {"type": "PodScheduled", "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."}
    placement = {"conditions": [said], "tolerations": [], "node_selector": {"pool": "h100"}}
    pod = make.a_pending_pod(cluster, placement=placement, **a_template("bb2"))

    assert explanations_of([pod], now=NOON)[pod.uid].key == "no_room"


@pytest.mark.parametrize(("older", "is_ready"), [(4, True), (1, False)])
def test_an_update_that_goes_on_by_itself_is_no_reason(older, is_ready):
    cluster = make.a_cluster("east")
    node = a_full_node(cluster, "n1", 8)
    for number in range(older):
        make.a_pod(node, f"old-{number}", **a_template("aa1"))
    make.a_pod(node, "new", is_ready=is_ready, **a_template("bb2"))
    pod = make.a_pending_pod(cluster, placement={"conditions": [FULL], "tolerations": []}, **a_template("bb2"))

    assert explanations_of([pod], now=NOON)[pod.uid].key == "no_room"
