"""The cast inside the simulator's own process: a planted fleet, played until the process ends."""

from simulator.actors.dcgm import PORT, Exporters
from simulator.actors.gpu_operator.release import Release
from simulator.actors.loop import Loop
from simulator.actors.play import Play
from simulator.actors.pod_logs import read_log
from simulator.actors.store_cluster import StoreCluster
from simulator.faults import Board
from simulator.fleets import FLEETS
from simulator.fleets.planting import Planting
from simulator.pod_ends import PodEnds
from simulator.store import Store

EMPTY = "none"


def raise_curtain(
    store: Store,
    faults: Board,
    ends: PodEnds,
    *,
    fleet: str,
    nodes: int,
    seed: int,
    operator: str,
) -> Play | None:
    """Plant the fleet and start its actors. None for an empty cluster.

    :raises KeyError: for a fleet that nobody has written.
    """
    if fleet == EMPTY:
        return None
    plan = FLEETS[fleet](nodes=nodes, seed=seed, release=Release(operator))
    cluster = StoreCluster(store)
    Planting(cluster, plan, store.clock.now()).plant()
    play = Play(cluster, Loop(store.clock), faults, release=plan.release)
    play.fill()
    ends.read_log = read_log
    ends.ports[PORT] = Exporters(play.world, play.kubelets.hosts).serve
    play.start()
    return play
