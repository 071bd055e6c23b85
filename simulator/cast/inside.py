"""The cast inside the simulator's own process: a planted fleet, played until the process ends."""

from dataclasses import replace

from simulator.actors.dra.api import Api
from simulator.actors.exporting.counters import Choice
from simulator.actors.exporting.exporters import PORT
from simulator.actors.exporting.vendors import VENDORS, VendorExporters
from simulator.actors.gpu_operator.release import Release
from simulator.actors.loop import Loop
from simulator.actors.objects import name
from simulator.actors.play import Play
from simulator.actors.pod_logs import PodLogs
from simulator.actors.repairers import janitor_definitions, lifecycle_definitions
from simulator.actors.store_cluster import StoreCluster
from simulator.faults import Board
from simulator.fleets import FLEETS
from simulator.fleets.mixes import UnknownMix
from simulator.fleets.planting import Planting
from simulator.fleets.registration import register_again
from simulator.kinds import DEFINITION, ResourceApi
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
    mix: str = "",
    mode: str = "",
    counters: Choice = Choice.SHIPPED,
    resource_api: ResourceApi = ResourceApi.V1,
    tells_devices: bool = False,
    has_janitor: bool = False,
    is_planted: bool = False,
) -> Play | None:
    """Plant the fleet, where it is not there from before, and start its actors. None for an empty cluster.

    :raises KeyError: for a fleet that nobody has written.
    :raises UnknownMix: for a mix, or a mode, that this fleet cannot have.
    """
    if fleet == EMPTY:
        return None
    asked = {name: value for name, value in (("mix", mix), ("mode", mode)) if value}
    plan = replace(FLEETS[fleet](nodes=nodes, seed=seed, release=Release(operator), **asked), counters=counters)
    if plan.has_claims and resource_api is ResourceApi.NONE:
        raise UnknownMix("nodes whose GPUs are claimed need resource.k8s.io: leave `dra` out of the mix")
    cluster = StoreCluster(store)
    if is_planted:
        register_again(cluster)
    else:
        Planting(cluster, plan, store.clock.now(), resource_api).plant()
    there = {name(each) for each in cluster.list(DEFINITION)[0]}
    for definition in (*janitor_definitions(), *lifecycle_definitions()) if has_janitor else ():
        if name(definition) not in there:
            cluster.create(DEFINITION, definition)
    dra = Api(resource_api) if plan.has_claims else None
    play = Play(
        cluster, Loop(store.clock), faults, release=plan.release, dra=dra, tells_devices=tells_devices,
        has_janitor=has_janitor,
    )  # fmt: skip
    play.fill()
    ends.read_log = PodLogs(play.world.journal).read
    ends.ports[PORT] = play.exporters.serve
    others = VendorExporters(play.world, faults)
    ends.ports |= {port: others.serve_at(port) for port in VENDORS}
    play.start()
    return play
