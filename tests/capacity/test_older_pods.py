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
    ],
)
def test_older_pods_of_the_deployment_come_first(older, key):
    cluster = make.a_cluster("east")
    node = make.a_node(
        cluster,
        allocatable={"nvidia.com/gpu": 1},
        requested={"nvidia.com/gpu": 1},
        cpu_allocatable_m=64_000,
        memory_allocatable_bytes=2**40,
    )
    make.a_pod(node, "old", **older)
    placement = {"conditions": [FULL], "tolerations": []}
    pod = make.a_pending_pod(cluster, placement=placement, created_at=NOON - timedelta(minutes=5), **a_template("bb2"))

    found = explanations_of([pod], now=NOON)[pod.uid]

    assert found.key == key
    waits = any(change.text == "Wait until other pods end." for change in found.changes)
    assert waits == (key == "no_room")
    if key == "rolling_update":
        assert "maxUnavailable" in found.changes[0].text
        assert not found.is_waiting, "it does not start by itself"
