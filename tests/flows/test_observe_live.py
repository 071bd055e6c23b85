"""What a page can see of a cluster, and how soon; and that no worker's end costs any of it."""

import json
import signal
import time

import pytest

from demo.visitor import Visitor, wait_until
from tests.flows.cluster import Cluster
from tests.flows.recorded import RecordedStack

pytestmark = pytest.mark.observe
LEASE_AND_SWEEP_S = 60.0  # a dead worker's lease is 30 s, beat looks every 10 s


def seen(visitor: Visitor, name: str) -> dict:
    return next(node for node in visitor.all("/api/v1/nodes") if node["name"] == name)


def first_node(gpu_cluster: Cluster) -> str:
    return gpu_cluster.nodes()[0].metadata.name


def test_every_node_of_the_cluster_is_seen(viewer: Visitor, gpu_cluster: Cluster):
    expected = {node.metadata.name for node in gpu_cluster.core.list_node().items}

    def all_seen() -> bool:
        return {node["name"] for node in viewer.all("/api/v1/nodes")} == expected

    wait_until(all_seen, what="every node to be seen", timeout_s=30)
    node = seen(viewer, first_node(gpu_cluster))
    assert (node["is_ready"], node["gpu_allocatable"], node["freshness"]) == (True, 8, "live")


def test_a_change_is_pushed_and_can_be_read(viewer: Visitor, gpu_cluster: Cluster):
    name = first_node(gpu_cluster)
    wait_until(lambda: viewer.all("/api/v1/nodes", search=name), what="the node", timeout_s=30)

    with viewer.listening("/live/?topics=fleet") as socket:
        hello = json.loads(socket.recv(timeout=10))
        with gpu_cluster.cordoned(name):
            wait_until(lambda: seen(viewer, name)["is_unschedulable"], what="the cordon", timeout_s=10)
            message = next_change(socket, seen(viewer, name)["id"])

    assert hello["type"] == "hello"
    assert "nodes" in message["kinds"]
    wait_until(lambda: not seen(viewer, name)["is_unschedulable"], what="the uncordon", timeout_s=10)


def test_a_worker_that_is_killed_is_followed_by_one_that_misses_nothing(
    viewer: Visitor, gpu_cluster: Cluster, stack: RecordedStack
):
    name = first_node(gpu_cluster)
    wait_until(lambda: viewer.all("/api/v1/nodes", search=name), what="the node", timeout_s=30)

    stack.kill("observe", signal.SIGKILL)
    with gpu_cluster.cordoned(name):
        unseen = seen(viewer, name)["is_unschedulable"]
        stack.restart("observe")
        wait_until(
            lambda: seen(viewer, name)["is_unschedulable"], what="a cordon nobody watched", timeout_s=LEASE_AND_SWEEP_S
        )
    wait_until(lambda: not seen(viewer, name)["is_unschedulable"], what="the uncordon", timeout_s=10)

    assert not unseen
    events = viewer.all(f"/api/v1/nodes/{seen(viewer, name)['id']}/events")
    newest = [event["sentence"] for event in events if event["kind"] == "cordon"][:2]
    assert newest == ["Uncordoned.", "Cordoned."]


def test_a_worker_that_is_asked_to_stop_does_so_at_once_and_hands_on(
    viewer: Visitor, gpu_cluster: Cluster, stack: RecordedStack
):
    name = first_node(gpu_cluster)
    wait_until(lambda: viewer.all("/api/v1/nodes", search=name), what="the node", timeout_s=30)

    begun = time.monotonic()
    stack.kill("observe", signal.SIGTERM)
    took_s = time.monotonic() - begun
    stack.restart("observe")
    with gpu_cluster.cordoned(name):
        wait_until(lambda: seen(viewer, name)["is_unschedulable"], what="the cordon", timeout_s=25)

    assert took_s < 6  # 2 s where the machine has nothing else to work on
    wait_until(lambda: not seen(viewer, name)["is_unschedulable"], what="the uncordon", timeout_s=10)


def next_change(socket, node_id: int) -> dict:
    """The next message that names this node."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        message = json.loads(socket.recv(timeout=10))
        if any(changed == node_id for changed, _ in message.get("nodes", [])):
            return message
    raise TimeoutError(f"no message named node {node_id}")
