"""What befalls a node that its row says may go: who lets it go must look at the node itself."""

import random
from collections.abc import Callable

from benchmarks.crashing import people
from benchmarks.crashing.nodes_seen import HELD_BY, HELD_SINCE
from benchmarks.crashing.oracle import QUIET
from benchmarks.crashing.world import KUBECTL, World
from fleet.models import Pool
from rollouts.commands import fleet_freezes
from simulator.actors.gpu_operator import keys
from simulator.kinds import NODE

Befalls = Callable[[World, str], object]


def choose(chance: random.Random) -> Befalls:
    return chance.choices([people.cordon, _force, _into_a_frozen_pool, _make_anew, take_over], [3, 3, 3, 2, 1])[0]


def _patch(world: World, node: str, body: object) -> None:
    world.line.notify(KUBECTL, "PATCH", f"/api/v1/nodes/{node}", body)


def _force(world: World, node: str) -> None:
    """Somebody has the operator begin with it, for which our label is no obstacle: it keeps nodes from the queue."""
    _patch(world, node, {"metadata": {"labels": {keys.STATE: "cordon-required"}}})


def _into_a_frozen_pool(world: World, node: str) -> None:
    pool, _ = Pool.objects.get_or_create(
        cluster=world.cluster,
        name=QUIET,
        defaults={"selector": f"{QUIET}=true", "max_unavailable": world.shape.nodes},
    )
    where = fleet_freezes.Where(cluster=world.cluster, pool=pool)
    fleet_freezes.freeze(where, actor="ada", reason="A schedule wants it.", now=world.clock(), binds_rollbacks=False)
    world.say("ada", f"freeze {QUIET}")
    _patch(world, node, {"metadata": {"labels": {QUIET: "true"}}})


def _make_anew(world: World, node: str) -> None:
    """`kubectl replace --force`: another node of this name, with all that was written on the one before it."""
    was = world.store.get(NODE, node)
    metadata = {key: was["metadata"][key] for key in ("name", "labels", "annotations")}
    world.line.notify(KUBECTL, "DELETE", f"/api/v1/nodes/{node}")
    world.line.notify(KUBECTL, "POST", "/api/v1/nodes", {"metadata": metadata, "spec": {}})
    world.store.patch(NODE, node, {"status": was["status"]}, how="merge", subresource="status")
    world.store.patch(NODE, node, {"spec": {"taints": None}}, how="merge")


def take_over(world: World, node: str) -> None:
    """The hold is somebody else's from here on."""
    _patch(world, node, {"metadata": {"annotations": {HELD_BY: None, HELD_SINCE: None}}})
