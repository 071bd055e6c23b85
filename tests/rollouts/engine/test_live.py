"""What is asked of the API server itself, before anything that cannot be taken back."""

import pytest

from fleet.models import ResourceSlice
from rollouts.engine.live_state import NodesNow, ask_cluster, ask_nodes
from simulator.actors.dra.api import Api
from simulator.actors.dra.slices import resource_slice
from simulator.actors.kubelet.host import host_of
from simulator.kinds import RESOURCE_SLICE
from tests.make import NOON
from tests.rollouts.engine.ground import CANARY, NEW, OLD, REST, Ground

pytestmark = pytest.mark.rounds
NAMED_BY = ("driver-version.full", "driver.major", "driver.minor", "driver.rev")


def offer(ground: Ground, name: str, version: str) -> None:
    """By a DRA driver, and by no label."""
    ground.label(name, **{f"nvidia.com/cuda.{key}": None for key in NAMED_BY})
    node = ground.node(name)
    host = host_of(node)
    host.driver = version
    made = resource_slice(Api(), node, host, gpus=range(1), generation=2)
    made["metadata"]["name"] = f"{name}-slice"
    ground.store.create(RESOURCE_SLICE, made)


def asked(ground: Ground) -> NodesNow:
    return ask_nodes(ground.plan, ground.connection, ask_cluster(ground.plan, ground.connection).daemonsets)


def slices_asked_for(ground: Ground) -> int:
    ground.writes()  # whatever was answered before the next request is in the log by then
    return sum(one["path"].endswith("/resourceslices") for one in ground.simulation.log.since(0))


def test_what_a_dra_driver_says_now_counts_and_not_what_its_row_says(ground: Ground):
    ground.draft()
    offer(ground, CANARY, NEW)
    ResourceSlice.objects.create(
        cluster=ground.cluster, uid="s", name="s", changed_at=NOON, driver="gpu.nvidia.com", pool=CANARY,
        node_name=CANARY, devices=[{"name": "gpu-0", "type": "gpu", "uuid": "GPU-1", "driver_version": OLD}],
    )  # fmt: skip

    found = asked(ground)

    assert found.offered[CANARY].first("driver_version") == NEW
    assert set(found.driver_pods) >= {CANARY, *REST}


def test_slices_are_asked_for_where_they_say_something_that_no_label_says(ground: Ground):
    ground.draft()
    assert asked(ground).offered == {}
    offer(ground, CANARY, NEW)

    assert asked(ground).offered == {}  # nothing is known of slices in this cluster
    assert slices_asked_for(ground) == 0


def test_version_and_spec_of_the_object_are_of_one_answer(ground: Ground):
    """What somebody writes between two requests would be half of each."""
    ground.draft()
    ground.writes()
    before = len(ground.simulation.log.since(0))

    live = ask_cluster(ground.plan, ground.connection)

    ground.writes()
    path = f"/nvidiadrivers/{ground.plan.object_name}"
    asked_for = [one["path"] for one in ground.simulation.log.since(0)[before:] if one["path"].endswith(path)]
    assert len(asked_for) == 1
    assert live.spec["version"] == live.object_version == OLD
