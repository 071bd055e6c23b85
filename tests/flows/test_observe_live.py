"""What a page can see of a cluster, and how soon; and that no worker's end costs any of it."""

import json
import signal
import time

import pytest

from demo.visitor import Visitor, wait_until
from tests.flows.cluster import Cluster
from tests.flows.recorded import RecordedStack
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.observe


def seen(visitor: Visitor, name: str) -> dict:
    return next(node for node in visitor.all("/api/v1/nodes") if node["name"] == name)


def first_node(gpu_cluster: Cluster) -> str:
    return gpu_cluster.nodes()[0].metadata.name


def test_every_node_of_the_cluster_is_seen(viewer: Visitor, gpu_cluster: Cluster):
    expected = {node.metadata.name for node in gpu_cluster.core.list_node().items}

    def all_seen() -> bool:
        return {node["name"] for node in viewer.all("/api/v1/nodes")} == expected

    wait_until(all_seen, what="every node to be seen", timeout_s=PATIENCE_S)
    node = seen(viewer, first_node(gpu_cluster))
    assert (node["is_ready"], node["gpu_allocatable"], node["freshness"]) == (True, 8, "live")


def test_a_change_is_pushed_and_can_be_read(viewer: Visitor, gpu_cluster: Cluster):
    name = first_node(gpu_cluster)
    wait_until(lambda: viewer.all("/api/v1/nodes", search=name), what="the node", timeout_s=PATIENCE_S)

    with viewer.listening("/live/?topics=fleet") as socket:
        hello = json.loads(socket.recv(timeout=PATIENCE_S))
        with gpu_cluster.cordoned(name):
            wait_until(lambda: seen(viewer, name)["is_unschedulable"], what="the cordon", timeout_s=PATIENCE_S)
            next_change(socket, seen(viewer, name)["id"])

    assert hello["type"] == "hello"
    wait_until(lambda: not seen(viewer, name)["is_unschedulable"], what="the uncordon", timeout_s=PATIENCE_S)


def test_a_worker_that_is_killed_is_followed_by_one_that_misses_nothing(
    viewer: Visitor, gpu_cluster: Cluster, stack: RecordedStack
):
    name = first_node(gpu_cluster)
    wait_until(lambda: viewer.all("/api/v1/nodes", search=name), what="the node", timeout_s=PATIENCE_S)

    stack.kill("observe", signal.SIGKILL)
    with gpu_cluster.cordoned(name):
        unseen = seen(viewer, name)["is_unschedulable"]
        stack.restart("observe")
        wait_until(lambda: seen(viewer, name)["is_unschedulable"], what="a cordon nobody watched", timeout_s=PATIENCE_S)
    wait_until(lambda: not seen(viewer, name)["is_unschedulable"], what="the uncordon", timeout_s=PATIENCE_S)

    assert not unseen
    events = viewer.all(f"/api/v1/nodes/{seen(viewer, name)['id']}/events")
    newest = [event["sentence"] for event in events if event["kind"] == "cordon"][:2]
    assert newest == ["Uncordoned.", "Cordoned by OpenAPI-Generator, as the API server has it."]  # its Python client


@pytest.mark.nightly
def test_a_worker_that_is_asked_to_stop_does_so_and_hands_on(
    viewer: Visitor, gpu_cluster: Cluster, stack: RecordedStack
):
    name = first_node(gpu_cluster)
    wait_until(lambda: viewer.all("/api/v1/nodes", search=name), what="the node", timeout_s=PATIENCE_S)

    stack.kill("observe", signal.SIGTERM)
    stack.restart("observe")
    with gpu_cluster.cordoned(name):
        wait_until(lambda: seen(viewer, name)["is_unschedulable"], what="the cordon", timeout_s=PATIENCE_S)

    wait_until(lambda: not seen(viewer, name)["is_unschedulable"], what="the uncordon", timeout_s=PATIENCE_S)


def next_change(socket, node_id: int) -> None:
    """Wait for the message that this node's own row changed: what is found of it may be told at any time."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        message = json.loads(socket.recv(timeout=PATIENCE_S))
        if "nodes" in message.get("kinds", []) and any(changed == node_id for changed, *_ in message.get("nodes", [])):
            return
    raise TimeoutError(f"no message named node {node_id}")
