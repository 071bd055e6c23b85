"""The fleet that figures are measured at has what they say it has."""

import json

from simulator.actors.loop import Loop
from simulator.actors.play import Play
from simulator.actors.store_cluster import StoreCluster
from simulator.clock import Clock
from simulator.faults import Board
from simulator.fleets.large import large
from simulator.fleets.planting import Planting
from simulator.kinds import NODE, POD
from simulator.store import Store

NODES = 100


def planted() -> Store:
    store = Store(Clock())
    Planting(StoreCluster(store), large(nodes=NODES), store.clock.now()).plant()
    return store


def test_has_eight_gpus_eight_operands_and_two_tenants_a_node():
    plan = large(nodes=5000)

    assert sum(machine.gpus for machine in plan.machines) == 40_000
    assert sum(workload.replicas for workload in plan.workloads) == 10_020


def test_is_planted_with_the_pods_it_promises():
    store = planted()
    pods = store.list(POD)[0]
    tenants = [pod for pod in pods if pod["metadata"]["namespace"].startswith(("team-", "frontier"))]

    assert 7.5 * NODES <= len(pods) - len(tenants) <= 9 * NODES
    assert len(tenants) == 2 * NODES + 1
    assert [pod["metadata"]["namespace"] for pod in tenants if not pod["spec"].get("nodeName")] == ["frontier"]


def test_objects_weigh_what_they_do_in_life():
    store = planted()

    def mean_bytes(objects: list) -> float:
        return sum(len(json.dumps(each, separators=(",", ":"))) for each in objects) / len(objects)

    assert 15_000 <= mean_bytes(store.list(NODE)[0]) <= 20_000
    assert 3_000 <= mean_bytes(store.list(POD)[0]) <= 5_500


def test_nothing_is_left_to_do_once_it_is_planted():
    store = planted()
    play = Play(StoreCluster(store), Loop(store.clock), Board())
    play.fill()
    version = store.version

    while play.loop.turn():
        pass

    assert store.version - version <= 3  # the pod that waits is told why
