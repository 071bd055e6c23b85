"""A kept cluster goes on with the releases of today, as kubelets that were updated do."""

from simulator.actors.objects import status
from simulator.actors.store_cluster import StoreCluster
from simulator.cast.inside import raise_curtain
from simulator.faults import Board
from simulator.kinds import NODE
from simulator.pod_ends import PodEnds
from tests.simulator.test_state import a_fleet

OLD = {"kubeletVersion": "v1.33.5", "containerRuntimeVersion": "containerd://2.1.4"}


def test_a_kept_cluster_says_the_releases_of_today():
    store = a_fleet()
    cluster = StoreCluster(store)
    before = {node["metadata"]["name"]: status(node)["nodeInfo"] for node in cluster.list(NODE)[0]}
    for called in before:
        cluster.patch(NODE, called, {"status": {"nodeInfo": OLD}}, subresource="status")

    play = raise_curtain(store, Board(), PodEnds(), fleet="small", nodes=2, seed=1, operator="v26.7.0", is_planted=True)

    assert play
    play.stop()
    assert {node["metadata"]["name"]: status(node)["nodeInfo"] for node in cluster.list(NODE)[0]} == before
