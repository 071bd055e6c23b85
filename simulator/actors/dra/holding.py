"""Which pods hold devices through claims: looking at one with admin access is not holding it."""

from simulator.actors.dra.requests import asked_by, claim_names, taken
from simulator.actors.objects import Obj, namespace
from simulator.actors.world import World
from simulator.kinds import RESOURCE_CLAIM


def holds_devices(world: World, pod: Obj) -> bool:
    return any(taken(claim) for claim in claims_of(world, pod))


def claims_of(world: World, pod: Obj) -> list[Obj]:
    """Those that were made for it, and those that it names."""
    if not asked_by(pod):
        return []
    names = [*claim_names(pod).values(), *(each.get("resourceClaimName", "") for each in asked_by(pod))]
    caches = [cache for kind, cache in world.caches.items() if kind.shelf == RESOURCE_CLAIM.shelf]
    found = (cache.get(called, namespace(pod)) for cache in caches for called in names if called)
    return [claim for claim in found if claim is not None]
