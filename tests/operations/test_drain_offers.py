"""The offers of a blocked drain rest on rows of the drain: they end with what they rest on (Z42)."""

import pytest

from fleet.models import Node
from operations.drain_offers import drain_offers_of
from operations.kinds import KINDS
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from tests.make import NOON, a_cluster, a_node, an_operation

pytestmark = pytest.mark.django_db


def blocked_on(node: Node, **given: str) -> OperationNode:
    """The row of a drain that failed on one pod."""
    pod = {"uid": "uid-of-web-1", "name": "team-a/web-1", "owner": "ReplicaSet/web", "budget": "web"} | given
    operation = an_operation(node.cluster, node.name, steps=KINDS["drain"].steps, state="finished")
    operation.nodes.update(node_uid=node.uid, state=NodeProgress.FAILED, progress={"pods": [pod]})
    return operation.nodes.get()


@pytest.mark.parametrize(
    ("later", "is_cordoned", "offered"),
    [
        ("", True, True),
        ("quarantine", True, True),
        ("drain", True, False),
        ("release", True, False),
        ("accept-uncordon", True, False),
        ("", False, False),
    ],
)
def test_a_drain_offers_nothing_once_the_node_was_released_or_drained_again(
    later: str, is_cordoned: bool, offered: bool
):
    node = a_node(a_cluster(), "gpu-0", is_unschedulable=is_cordoned)
    row = blocked_on(node)
    if later:
        an_operation(node.cluster, node.name, steps=KINDS[later].steps).nodes.update(node_uid=node.uid)

    assert bool(drain_offers_of(row, node, now=NOON)) is offered


@pytest.mark.parametrize(
    ("is_ready", "titles", "cost"),
    [
        (None, ["Repair the node", "Mark out of service"], "Its pods stay until the kubelet is back."),
        (False, ["Repair the node"], "The kubelet reports again, but the node is not Ready."),
        (True, ["Drain again"], "The kubelet is back and can end pods."),
    ],
)
def test_without_its_kubelet_a_node_is_repaired_or_marked_out_of_service(
    is_ready: bool | None, titles: list[str], cost: str
):
    """lifecycle R30: the actor first, and the taint only while the node does not report."""
    node = a_node(a_cluster(), "gpu-0", is_unschedulable=True, is_ready=is_ready)
    row = blocked_on(node)
    row.progress = {"kubelet_gone": True}

    offers = drain_offers_of(row, node, now=NOON)
    assert [offer.title for offer in offers] == titles
    assert offers[0].cost.startswith(cost)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"contact": "#team-a"}, "Contact: #team-a."),
        ({"contact": ""}, "Neither pod nor namespace names a contact."),
        ({}, "Its contact is unknown: the namespace was not read."),
    ],
)
def test_a_contact_that_was_not_read_is_unknown(given: dict[str, str], said: str):
    node = a_node(a_cluster(), "gpu-0", is_unschedulable=True)
    (ask,) = [each for each in drain_offers_of(blocked_on(node, **given), node, now=NOON) if "Ask" in each.title]

    assert said in ask.cost
    assert "Jobs are evicted after 30 min, or after half of the deadline if that is less." in ask.cost
