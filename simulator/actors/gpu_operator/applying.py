"""Makes a DaemonSet what the operator has rendered; an equal template is left alone (its hash is an annotation)."""

from simulator.actors.gpu_operator import keys
from simulator.actors.objects import Obj, annotations, generation, name, status
from simulator.actors.world import World
from simulator.kinds import DAEMON_SET, SERVICE_ACCOUNT
from simulator.refusals import Refused


def apply_set(world: World, wanted: Obj) -> Obj:
    held = world[DAEMON_SET].get(name(wanted), keys.NAMESPACE)
    if held is None:
        _account(world, wanted["spec"]["template"]["spec"]["serviceAccountName"])
        return world.create(DAEMON_SET, wanted, keys.NAMESPACE)
    hash_ = annotations(wanted)[keys.APPLIED_HASH]
    if annotations(held).get(keys.APPLIED_HASH) == hash_:
        return held
    noted = {**annotations(held), keys.APPLIED_HASH: hash_}
    patch = [
        {"op": "replace", "path": "/spec/template", "value": wanted["spec"]["template"]},
        {"op": "add", "path": "/metadata/annotations", "value": noted},
    ]
    return world.patch(DAEMON_SET, held, patch, how="json")


def is_rolled_out(driver_set: Obj) -> bool:
    counted = status(driver_set)
    wanted = counted.get("desiredNumberScheduled", 0)
    is_counted = counted.get("observedGeneration", 0) >= generation(driver_set)
    return bool(is_counted and counted.get("numberAvailable", 0) >= wanted)


def _account(world: World, called: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": called}}
    try:
        world.cluster.create(SERVICE_ACCOUNT, account, keys.NAMESPACE)
    except Refused as refusal:
        if refusal.status != 409:
            raise
